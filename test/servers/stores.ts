/**
 * `npx tsx test/servers/stores.ts`: runs both test servers, empty, until its standard input ends. Prints the variables
 * that a service needs to use them, one `NAME=value` per line, then `ready`. For `npm run demo -- --test-servers`, and
 * to try by hand what `docs/how-to/restore.md` describes for external stores.
 */
import { randomBytes } from 'node:crypto';
import { startEventStoreDb } from './eventstoredb/server.js';
import { ferretDbBuilt, startFerretDb } from './ferretdb-process.js';

if (ferretDbBuilt()) {
  const [log, mongo] = await Promise.all([startEventStoreDb(), startFerretDb()]);
  const lines = [
    `SVC_EVENTSTORE_URL=${log.url}`,
    `SVC_MONGODB_URL=${mongo.url}/svc`,
    `SVC_MASTER_KEY=${randomBytes(32).toString('base64')}`,
    'ready',
  ];
  process.stdout.write(`${lines.join('\n')}\n`);
  let closing: Promise<unknown> | undefined;
  const end = (): void => {
    closing ??= Promise.all([log.close(), mongo.close()]).then(() => process.exit(0));
  };
  process.stdin.on('end', end).resume();
  process.on('SIGTERM', end);
  process.on('SIGINT', end);
} else {
  process.stderr.write('FerretDB is missing: install Go and run `npm run test:servers`\n');
  process.exitCode = 1;
}
