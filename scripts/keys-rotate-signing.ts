/**
 * `npm run keys:rotate-signing`: replaces the key that signs access tokens, so that every token ends.
 * See `docs/how-to/rotate-keys.md#signing-key`.
 */
import { createKeyring } from '../src/security/keyring.js';
import { replaceSigningKey } from '../src/app/installation/signing-key.js';
import { systemClock } from '../src/kernel/clock.js';
import { streams } from '../src/kernel/event.js';
import { randomIds } from '../src/kernel/ids.js';
import { ensureKeyring } from '../src/app/installation/keyring.js';
import { lastRevision } from '../src/storage/event-store.js';
import { CommandError, exitCodes, parseArguments, runCommand, say } from './maintenance/command-line.js';
import { openInstallation } from './maintenance/installation.js';
import { masterKeyOf } from './maintenance/log-chain.js';

const usage = `Usage: npm run keys:rotate-signing

Replaces the key that signs access tokens: every token ends, and everybody signs in again. Use it when the key, a backup
with its master key, or a token may be in wrong hands. Works on the stores and the master key that the environment names.
Running instances take up the new key by themselves. Only one process can open embedded stores: stop the service first.`;

await runCommand(usage, async (argv, signal) => {
  parseArguments(argv, [], 0);
  const installation = await openInstallation({ signal });
  try {
    const { eventStore } = installation;
    if ((await lastRevision(eventStore, streams.service)) === undefined) {
      throw new CommandError('The service has never started on these stores: there is no key to replace.');
    }
    const { masterKey } = await masterKeyOf(installation);
    const clock = systemClock;
    const { content } = await ensureKeyring({ eventStore, masterKey, clock, ids: randomIds });
    const keyring = createKeyring(content);
    try {
      const options = { eventStore, keyring, clock, ids: randomIds };
      const publicKey = await replaceSigningKey(options);
      say(`Tokens are signed by a new key now; every earlier token has ended. Public key: ${publicKey}`);
    } finally {
      keyring.close();
    }
  } finally {
    await installation.close();
  }
  return exitCodes.done;
});
