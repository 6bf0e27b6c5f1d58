/** The program of the worker threads: the list of the jobs that they know. It wires, like `app.ts`. See `src/workers/`. */
import { createCompileEarlier } from './history/compile-earlier.js';
import { jobName as compileEarlier } from './history/messages.js';
import { serveJobs } from './workers/thread.js';

serveJobs({ [compileEarlier]: createCompileEarlier() });
