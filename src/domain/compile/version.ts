/**
 * The compiler version of this release. Raise it when the output for the same fleet changes, or the golden tests fail. A
 * release with a higher number touches every node when it starts.
 * Implements `docs/contract/domain.md#generation`.
 */
export const compilerVersion = 3;
