"""Prints a catalogue as CSV, always the same: 2,000 products in 20 categories, with prices and click rates."""

import random

CATEGORIES = (
    "bags belts books cameras candles chairs clocks coats games gloves hats headphones jackets lamps mugs pans "
    "rugs scarves shoes watches"
).split()

random.seed(3)
print("product,category,price,clicks")
for category in CATEGORIES:
    typical = random.uniform(10, 200)
    level = 0.6 if category == "headphones" else random.uniform(0.03, 0.2)
    for number in range(1, 101):
        price = typical * random.uniform(0.7, 1.4)
        clicks = level - 0.02 * (price / typical - 1)  # within a category, the cheaper the better
        print(f"{category} {number:03},{category},{price:.2f},{clicks:.4f}")
