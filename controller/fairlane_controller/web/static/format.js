// SPDX-License-Identifier: Apache-2.0
// Numbers of the charts, for people; a dash is what is not known.

export const count = (n) => Math.round(n).toLocaleString("en");
export const plain = (n) => String(Number(Number(n).toPrecision(4)));
export const clock = (unixSeconds) => new Date(unixSeconds * 1000).toLocaleTimeString("en-GB");

export function rate(bps, unit = "bit/s") {
  const [factor, name] = [[1e9, "G"], [1e6, "M"], [1e3, "k"]].find(([least]) => bps >= least * 0.9995) ?? [1, ""], n = bps / factor;
  return `${n.toFixed(factor === 1 || n >= 99.95 ? 0 : n < 9.995 ? 2 : 1)} ${name}${unit}`;
}
