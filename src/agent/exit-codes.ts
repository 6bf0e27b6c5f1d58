/** The exit codes of `gateway-agent`, which its `--help` explains. */
export const exitCodes = { done: 0, failed: 1, wrongUse: 2, refused: 3, unreached: 4, stateUnusable: 5 } as const;
