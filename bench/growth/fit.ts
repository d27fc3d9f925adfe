/** The exponent by which a cost grows: `cost = factor × size^exponent`, by least squares on the logarithms of both. */

export interface PowerFit {
  readonly exponent: number;
  readonly factor: number;
}

/** NaN for fewer than two sizes. Points without a cost above nothing have no logarithm, and are left out. */
export function fitPower(points: readonly { readonly size: number; readonly cost: number }[]): PowerFit {
  const logs = points.filter(({ size, cost }) => size > 0 && cost > 0).map(({ size, cost }) => [Math.log(size), Math.log(cost)] as const);
  const meanOf = (index: 0 | 1): number => logs.reduce((sum, log) => sum + log[index], 0) / logs.length;
  const [meanSize, meanCost] = [meanOf(0), meanOf(1)];
  let together = 0;
  let square = 0;
  for (const [size, cost] of logs) {
    together += (size - meanSize) * (cost - meanCost);
    square += (size - meanSize) ** 2;
  }
  const exponent = square === 0 ? Number.NaN : together / square;
  return { exponent, factor: Math.exp(meanCost - exponent * meanSize) };
}
