/** A process that prints a word and exits. */
import { writeSync } from 'node:fs';

writeSync(1, 'bye\n');
