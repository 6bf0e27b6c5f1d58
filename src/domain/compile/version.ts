/**
 * The compiler's number. Raise it whenever the output for the same fleet changes: the golden outputs in the tests fail
 * until it is. A release with a higher number touches every node at its start (`docs/contract/domain.md#generation`).
 */
export const compilerVersion = 1;
