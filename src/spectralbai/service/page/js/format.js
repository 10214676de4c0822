// Numbers and times as people read them.

const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const short = new Intl.NumberFormat("en", { maximumSignificantDigits: 3 });
const stamp = new Intl.DateTimeFormat("en-GB", { dateStyle: "medium", timeStyle: "short" });
const STEPS = [
  [60, 1, "s"],
  [3600, 60, "min"],
  [86400, 3600, "h"],
  [Infinity, 86400, "d"],
];

export const count = (number) => whole.format(number);
export const plain = (number) => (number === null || number === undefined ? "-" : short.format(number));
export const things = (number, one, many = `${one}s`) => `${count(number)} ${number === 1 ? one : many}`;
export const date = (text) => stamp.format(new Date(text));

/** A share with one decimal, none from 10 % on. */
export function share(part) {
  if (part === null || part === undefined) return "-";
  if (part > 0 && part < 0.001) return "< 0.1 %";
  return `${(100 * part).toFixed(part >= 0.0995 ? 0 : 1)} %`;
}

/** How long ago, or in how long, in one unit. */
export function apart(text, now = Date.now()) {
  const seconds = (now - new Date(text).getTime()) / 1000;
  const [, unit, name] = STEPS.find(([limit]) => Math.abs(seconds) < limit);
  const number = `${count(Math.floor(Math.abs(seconds) / unit))} ${name}`;
  return seconds >= 0 ? `${number} ago` : `in ${number}`;
}

/** Ticks at round whole numbers. */
export function ticks(low, high, about = 5) {
  const span = high - low;
  if (!(span > 0)) return [low];
  const rough = Math.max(1, span / about);
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((each) => each * power).find((each) => each >= rough);
  const found = [];
  for (let at = Math.ceil(low / step) * step; at <= high + step * 1e-9; at += step) found.push(at);
  return found;
}

/** The state of a status: decided, but contradicted since, is doubted. */
export function stateOf(status) {
  return status.state === "decided" && status.consistent === false ? "doubted" : status.state;
}
