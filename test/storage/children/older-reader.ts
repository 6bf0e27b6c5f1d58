/**
 * A process that has the database of a store open and reads it, without the folder's lock and without announcing itself, as
 * releases before both did. Arguments: folder of the store. Prints `open` and waits to be killed.
 */
import { writeSync } from 'node:fs';
import { open } from 'lmdb';

const root = open({ path: process.argv[2] ?? '', noSubdir: false });
const reading = root.useReadTransaction();
writeSync(1, 'open\n');
// Keeps the transaction, and with it the entry in the table of readers.
setInterval(() => reading.done, 1_000_000);
