/** Types of `build.js`. */
export declare const built: string;
export declare function buildCli(): Promise<void>;
