/**
 * The compiler version of this release. Raise it when the output for the same fleet changes; the test of golden outputs fails
 * otherwise. A release with a higher number touches every node when it starts.
 * Implements `docs/contract/domain.md#generation`.
 */
export const compilerVersion = 3;
