"""`python -m spectralbai` is the command `spectralbai`."""

from spectralbai.cli import main

main()
