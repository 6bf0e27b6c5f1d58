/**
 * `npm run keys:rotate-signing`: replaces the key that signs access tokens, which ends all tokens. See
 * `docs/how-to/rotate-keys.md#signing-key`.
 */
import { createKeyring } from '../../../src/security/keyring.js';
import { replaceSigningKey } from '../../../src/app/installation/signing-key.js';
import { systemClock } from '../../../src/kernel/clock.js';
import { randomIds } from '../../../src/kernel/ids.js';
import { exitCodes, parseArguments, say, whileOpen, type ExitCode } from '../command-line.js';
import { openInstallation } from '../installation.js';
import { keyringOf } from '../keyring.js';

export const usage = `Usage: gateway-control maintenance keys:rotate-signing

Replaces the key that signs access tokens: every token ends, and everybody signs in again. Use it when the key, a backup
with its master key, or a token may be in wrong hands. Works on the stores and the master key that the environment names.
Running instances take up the new key by themselves. Only one process can open embedded stores: stop the service first.`;

export async function run(argv: readonly string[], signal: AbortSignal): Promise<ExitCode> {
  parseArguments(argv, [], 0);
  await whileOpen(openInstallation({ signal }), async (installation) => {
    const { eventStore } = installation;
    const { content, logChain } = await keyringOf(installation);
    await whileOpen(createKeyring(content), async (keyring) => {
      const publicKey = await replaceSigningKey({ eventStore, keyring, logChain, clock: systemClock, ids: randomIds });
      say(`Tokens are now signed with a new key; all earlier tokens have ended. Public key: ${publicKey}`);
    });
  });
  return exitCodes.done;
}
