/** Types of `commit.js`. */
export declare function commitOf(root: string): string;
