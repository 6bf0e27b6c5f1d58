/**
 * Which rule of a listener a server name selects: an exact name before a wildcard, whose `*` stands for exactly one
 * label. Pure. Implements `docs/contract/domain.md#listeners-and-collisions`.
 */
export interface NameTable<Rule> {
  match(serverName: string): Rule | undefined;
}

/** @param rules names as in the configuration, each once */
export function createNameTable<Rule>(rules: Iterable<readonly [string, Rule]>): NameTable<Rule> {
  const exact = new Map<string, Rule>();
  /** By what follows the `*`, with its dot. */
  const wildcards = new Map<string, Rule>();
  for (const [text, rule] of rules) {
    const name = text.toLowerCase();
    if (name.startsWith('*.')) wildcards.set(name.slice(1), rule);
    else exact.set(name, rule);
  }
  return {
    match(serverName) {
      const dot = serverName.indexOf('.');
      return exact.get(serverName) ?? (dot > 0 ? wildcards.get(serverName.slice(dot)) : undefined);
    },
  };
}
