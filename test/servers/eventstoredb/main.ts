/**
 * The test server as a separate process. Arguments: data folder, port (0 for a free one). First line: `listening
 * <port>`. Each line of its standard input is a JSON object of faults to set; it is answered with `ok`.
 */
import { writeSync } from 'node:fs';
import { createInterface } from 'node:readline';
import type { Faults } from './faults.js';
import { startEventStoreDb } from './server.js';

const [folder, port] = process.argv.slice(2);
const server = await startEventStoreDb({ ...(folder === undefined ? {} : { folder }), port: Number(port ?? 0) });
writeSync(1, `listening ${server.port}\n`);
createInterface({ input: process.stdin }).on('line', (line) => {
  Object.assign(server.faults, JSON.parse(line) as Partial<Faults>);
  writeSync(1, 'ok\n');
});
process.on('SIGTERM', () => void server.close().then(() => process.exit(0)));
