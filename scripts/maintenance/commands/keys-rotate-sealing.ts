/** `npm run keys:rotate-sealing`: adds the key that seals from now on (`docs/how-to/rotate-keys.md#sealing-key`). */
import { systemClock } from '../../../src/kernel/clock.js';
import { randomIds } from '../../../src/kernel/ids.js';
import { withNewKey } from '../../../src/security/keyring.js';
import { replaceKeyring } from '../../../src/app/installation/keyring.js';
import { exitCodes, parseArguments, say, whileOpen, type ExitCode } from '../command-line.js';
import { openInstallation, refuseRunning } from '../installation.js';
import { keyringOf, masterKeyOf } from '../keyring.js';

export const usage = `Usage: gateway-control maintenance keys:rotate-sealing

Adds a new key to the keyring of the installation that the environment names: values sealed from now on use it.
The earlier keys stay, because the log does not change. Stop every instance first.`;

export async function run(argv: readonly string[], signal: AbortSignal): Promise<ExitCode> {
  parseArguments(argv, [], 0);
  return whileOpen(openInstallation({ signal }), async (installation) => {
    const { eventStore, readStore } = installation;
    const { masterKey } = await masterKeyOf(installation);
    await refuseRunning(readStore, 'they could not open values sealed with the new key');
    const stored = await keyringOf(installation);
    const content = withNewKey(stored.content);
    await replaceKeyring({ eventStore, masterKey, clock: systemClock, ids: randomIds }, stored, content);
    say(`The keyring has ${content.sealing.length} keys now; ${content.sealing.at(-1)?.id} seals from now on.`);
    return exitCodes.done;
  });
}
