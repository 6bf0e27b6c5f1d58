/** Types of `build.js`. */
export declare const built: string;
export declare function buildCli(): Promise<void>;
export declare function bundleCli(outfile: string, commit: string): Promise<readonly string[]>;
