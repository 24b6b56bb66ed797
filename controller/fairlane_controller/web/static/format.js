// SPDX-License-Identifier: Apache-2.0
// Numbers for people: rates in bit/s, times, counts; a dash is what is not known.

export const DASH = "–";

export function rate(bps) {
  if (bps == null) return DASH;
  for (const [factor, name] of [[1e9, "G"], [1e6, "M"], [1e3, "k"]]) {
    if (bps >= factor * 0.9995) {
      const n = bps / factor;
      return `${n.toFixed(n < 9.995 ? 2 : n < 99.95 ? 1 : 0)} ${name}bit/s`;
    }
  }
  return `${Math.round(bps)} bit/s`;
}

export function seconds(s) {
  if (s == null) return DASH;
  for (const [factor, name] of [[1, "s"], [1e-3, "ms"], [1e-6, "µs"]]) {
    if (s >= factor * 0.9995) return `${Number((s / factor).toPrecision(3))} ${name}`;
  }
  return `${s} s`;
}

export const count = (n) => (n == null ? DASH : Math.round(n).toLocaleString("en"));
export const perSecond = (n) => (n == null ? DASH : n === 0 ? "0" : n < 99.95 ? n.toFixed(1) : count(n));
export const percent = (n) => (n == null ? DASH : `${Math.round(100 * n)} %`);
export const plain = (n) => (n == null ? DASH : String(Number(Number(n).toPrecision(4))));
export const clock = (unixSeconds) => new Date(unixSeconds * 1000).toLocaleTimeString("en-GB");
