/**
 * `npm run admin:reset-password -- NAME`: sets a new password for an account whose password is lost.
 * See `docs/how-to/lost-password.md`.
 */
import { randomBytes } from 'node:crypto';
import { createInterface } from 'node:readline';
import { tokensEnded } from '../../../src/instance/revocations.js';
import { liveInstances } from '../../../src/instance/instance-lease.js';
import { createGateway } from '../../../src/commands/gateway.js';
import { accountsAggregate } from '../../../src/commands/aggregate.js';
import { userField } from '../../../src/accounts/fields.js';
import { openAccounts } from '../../../src/projections/accounts.js';
import { systemContext } from '../../../src/commands/system.js';
import { userByName } from '../../../src/domain/accounts/accounts.js';
import { isPassword } from '../../../src/domain/accounts/user.js';
import { systemClock } from '../../../src/kernel/clock.js';
import { randomIds } from '../../../src/kernel/ids.js';
import { limits } from '../../../src/kernel/limits.js';
import { createKeyring } from '../../../src/security/keyring.js';
import { createPasswordHasher } from '../../../src/security/passwords.js';
import {
  CommandError,
  exitCodes,
  parseArguments,
  plainLogger,
  say,
  UsageError,
  type ExitCode,
} from '../command-line.js';
import { openInstallation, type Installation } from '../installation.js';
import { keyringOf } from '../keyring.js';

export const usage = `Usage: gateway-control maintenance admin:reset-password NAME [--stdin]

Sets a new password for the account NAME, prints it and ends the account's tokens.
--stdin: reads the password (12 to 256 characters) from the first line of standard input and does not print it.
Works on the stores and the master key that the environment names, with EventStoreDB and MongoDB while the service runs.
Only one process can open embedded stores: stop the service first.`;

export async function run(argv: readonly string[], signal: AbortSignal): Promise<ExitCode> {
  const { positional, flags } = parseArguments(argv, ['--stdin'], 1);
  const [name] = positional;
  if (name === undefined) throw new UsageError('The name of the account is missing');
  const password = flags.has('--stdin') ? await firstLine() : randomBytes(18).toString('base64url');
  if (!isPassword(password)) throw new UsageError('A password has 12 to 256 characters');
  const installation = await openInstallation({ signal });
  let everywhere: boolean;
  try {
    everywhere = await resetPassword(installation, name, password);
  } finally {
    await installation.close();
  }
  say(`The password of ${name} is changed; all of its tokens have ended.`);
  if (!everywhere) say('A running instance has not confirmed yet that it refuses them; it will once it reads the log.');
  if (!flags.has('--stdin')) say(password);
  return exitCodes.done;
}

/**
 * @returns whether every running instance refuses the account's tokens
 * @throws CommandError, WrongMasterKeyError, ServiceError
 */
async function resetPassword(installation: Installation, name: string, password: string): Promise<boolean> {
  const { eventStore } = installation;
  const [clock, ids, logger] = [systemClock, randomIds, plainLogger];
  const { content, logChain } = await keyringOf(installation);
  const keyring = createKeyring(content);
  const view = openAccounts(eventStore, logChain, logger);
  const hasher = createPasswordHasher();
  try {
    await view.catchUp();
    const gateway = createGateway(
      accountsAggregate,
      { ...view, state: () => view.accounts },
      {
        eventStore,
        clock,
        ids,
        logger,
        logChain,
        readOnly: () => view.failure(),
        sharedTime: systemClock.now,
      },
    );
    try {
      const user = userByName(view.accounts, name);
      if (user === undefined) throw new CommandError(`There is no account "${name}".`);
      const hashed = await hasher.hash(password);
      if (hashed.kind !== 'hashed') throw new CommandError('The password could not be hashed: try again.');
      const sealed = keyring.seal(Buffer.from(hashed.phc), userField(user.id, 'password'));
      const outcome = await gateway.execute(
        {
          type: 'ChangeUserPassword',
          id: user.id,
          ifMatch: undefined,
          password: sealed,
          replaces: null,
          endsApiTokens: true,
        },
        systemContext('password reset'),
        () => undefined,
      );
      return await refusedEverywhere(
        installation,
        outcome.kind === 'done' ? outcome.events.at(-1)?.revision : undefined,
      );
    } finally {
      await gateway.close();
    }
  } finally {
    view.close();
    hasher.close();
    keyring.close();
  }
}

async function refusedEverywhere({ config, readStore }: Installation, revision: number | undefined): Promise<boolean> {
  // This command has embedded stores to itself: any lease in them belongs to a dead process.
  if (config.eventStoreUrl === undefined || config.mongoUrl === undefined || revision === undefined) return true;
  const instances = { instanceId: undefined, clock: systemClock, logger: plainLogger };
  const leases = { ...instances, liveInstances: () => liveInstances(readStore) };
  return tokensEnded(leases, revision, limits.rest.projectionWaitMs);
}

async function firstLine(): Promise<string> {
  const lines = createInterface({ input: process.stdin });
  for await (const line of lines) {
    lines.close();
    return line;
  }
  return '';
}
