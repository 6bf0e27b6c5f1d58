/** Maps whose values are made when they are first needed, groups of values with the same key, and runs of bounded weight. */

/** The value of a key, made and kept if there is none. Counts as a use in an LRU map (`lru.ts`). */
export function getOrMake<K, V>(
  map: { get(key: K): V | undefined; set(key: K, value: NoInfer<V>): unknown },
  key: K,
  make: () => NoInfer<V>,
): V {
  const known = map.get(key);
  if (known !== undefined) return known;
  const made = make();
  map.set(key, made);
  return made;
}

/** The groups in the order of their first values. A value without a key is left out. */
export function groupBy<K, V>(values: Iterable<V>, keyOf: (value: V) => K | undefined): Map<K, [V, ...V[]]> {
  const groups = new Map<K, [V, ...V[]]>();
  for (const value of values) {
    const key = keyOf(value);
    const group = key === undefined ? undefined : groups.get(key);
    if (group !== undefined) group.push(value);
    else if (key !== undefined) groups.set(key, [value]);
  }
  return groups;
}

/** The values in runs, each as long as the bounds of weight and length allow; a heavier value is alone. */
export function* runsOf<V>(
  values: Iterable<V>,
  weigh: (value: V) => number,
  maxWeight: number,
  maxLength = Number.POSITIVE_INFINITY,
): Generator<readonly V[], void> {
  let run: V[] = [];
  let sum = 0;
  for (const value of values) {
    const weight = weigh(value);
    if (run.length >= maxLength || (run.length > 0 && sum + weight > maxWeight)) {
      yield run;
      [run, sum] = [[], 0];
    }
    run.push(value);
    sum += weight;
  }
  if (run.length > 0) yield run;
}
