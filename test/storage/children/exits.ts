/** A process that says a word and ends. */
import { writeSync } from 'node:fs';

writeSync(1, 'bye\n');
