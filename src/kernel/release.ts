/** The numbers of this release that its logs and its nodes depend on. `version.ts` has its name. */

/**
 * The compiler version of this release. Raise it when the output for the same fleet changes, or the golden tests fail. A
 * release with a higher number touches every node when it starts.
 * Implements `docs/contract/domain.md#generation`.
 */
export const compilerVersion = 3;

/** The format of log, archive and data folder. Raise it when earlier releases cannot read what this one writes. */
export const dataFormat = 1;
