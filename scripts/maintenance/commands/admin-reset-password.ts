/**
 * `npm run admin:reset-password -- NAME`: sets a new password for an account whose password is lost.
 * See `docs/how-to/lost-password.md`.
 */
import { randomBytes } from 'node:crypto';
import { createInterface } from 'node:readline';
import { sessionsEndedOnOthers, tokensEnded } from '../../../src/instance/revocations.js';
import { liveInstances } from '../../../src/instance/instance-lease.js';
import { createGateway } from '../../../src/commands/gateway.js';
import type { CommandOutcome } from '../../../src/commands/port.js';
import { accountsAggregate } from '../../../src/commands/aggregate.js';
import { userField } from '../../../src/accounts/fields.js';
import { openAccounts } from '../../../src/projections/accounts.js';
import { deleteThoseOf } from '../../../src/commands/join-tokens.js';
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
import { fleetGateway } from '../fleet-gateway.js';
import { openInstallation, type Installation } from '../installation.js';
import { keyringOf } from '../keyring.js';

export const usage = `Usage: gateway-control maintenance admin:reset-password NAME [--stdin]

Sets a new password for the account NAME, prints it, ends the account's tokens and deletes the join tokens that it made.
--stdin: reads the password (12 to 256 characters) from the first line of standard input and does not print it.
Works on the stores and the master key that the environment names, with EventStoreDB and MongoDB while the service runs.
Only one process can open embedded stores: stop the service first.`;

export async function run(argv: readonly string[], signal: AbortSignal): Promise<ExitCode> {
  const { positional, flags } = parseArguments(argv, ['--stdin'], 1);
  const [name] = positional;
  if (name === undefined) throw new UsageError('The name of the account is missing');
  const password = flags.has('--stdin') ? await firstLine(signal) : randomBytes(18).toString('base64url');
  if (signal.aborted) return exitCodes.interrupted;
  if (!isPassword(password)) throw new UsageError('A password has 12 to 256 characters');
  const installation = await openInstallation({ signal });
  let isChanged = false;
  const noteChanged = (): void => {
    isChanged = true;
    say(`The password of ${name} is changed; all of its tokens have ended.`);
  };
  try {
    const reset = await resetPassword(installation, name, password, noteChanged).finally(() => installation.close());
    if (reset.joinTokensDeleted > 0) say(`Join tokens of this account that were deleted: ${reset.joinTokensDeleted}.`);
    if (!reset.everywhere)
      say('A running instance has not confirmed yet that it refuses them; it will once it reads the log.');
  } finally {
    // Also when something failed after the change, because nobody else has it.
    if (isChanged && !flags.has('--stdin')) say(password);
  }
  return exitCodes.done;
}

interface Reset {
  readonly joinTokensDeleted: number;
  /** Whether every running instance refuses the account's tokens, and the join tokens. */
  readonly everywhere: boolean;
}

/** @param onChanged called as soon as the password is changed @throws CommandError, WrongMasterKeyError, ServiceError */
async function resetPassword(
  installation: Installation,
  name: string,
  password: string,
  onChanged: () => void,
): Promise<Reset> {
  const { eventStore } = installation;
  const [clock, ids, logger] = [systemClock, randomIds, plainLogger];
  const { content, logChain } = await keyringOf(installation);
  const keyring = createKeyring(content);
  const view = openAccounts(eventStore, logChain, logger);
  const hasher = createPasswordHasher();
  try {
    await view.catchUp();
    const user = userByName(view.accounts, name);
    if (user === undefined) throw new CommandError(`There is no account "${name}".`);
    const hashed = await hasher.hash(password);
    if (hashed.kind !== 'hashed') throw new CommandError('The password could not be hashed: try again.');
    const sealed = keyring.seal(Buffer.from(hashed.phc), userField(user.id, 'password'));
    const fleet = await fleetGateway(installation, logChain);
    const gateway = createGateway(
      accountsAggregate,
      { ...view, state: () => view.accounts },
      { eventStore, clock, ids, logger, logChain, readOnly: () => view.failure(), sharedTime: systemClock.now },
    );
    const context = systemContext('password reset');
    let revoked: number | undefined;
    const deleteJoinTokens = (): Promise<number> =>
      deleteThoseOf(fleet, user.id, async (id) => {
        const command = { type: 'DeleteJoinToken', id, ifMatch: undefined } as const;
        revoked = revisionOf(await fleet.execute(command, context, () => undefined)) ?? revoked;
      });
    try {
      // As over REST: first the existing tokens, then those that were made while the old password was still valid.
      const first = await deleteJoinTokens();
      const change = { ifMatch: undefined, password: sealed, replaces: null, endsApiTokens: true } as const;
      const changed = await gateway.execute(
        { type: 'ChangeUserPassword', id: user.id, ...change },
        context,
        () => undefined,
      );
      onChanged();
      const joinTokensDeleted = first + (await deleteJoinTokens());
      return { joinTokensDeleted, everywhere: await refusedEverywhere(installation, revisionOf(changed), revoked) };
    } finally {
      await gateway.close();
      await fleet.close();
    }
  } finally {
    view.close();
    hasher.close();
    keyring.close();
  }
}

function revisionOf(outcome: CommandOutcome<void>): number | undefined {
  return outcome.kind === 'done' ? outcome.events.at(-1)?.revision : undefined;
}

/** @param changed the revision of the password @param revoked of the last join token, if there was one */
async function refusedEverywhere(
  { config, readStore }: Installation,
  changed: number | undefined,
  revoked: number | undefined,
): Promise<boolean> {
  // This command has embedded stores to itself: any lease in them belongs to a dead process.
  if (config.eventStoreUrl === undefined || config.mongoUrl === undefined) return true;
  const instances = { instanceId: undefined, clock: systemClock, logger: plainLogger };
  const leases = { ...instances, liveInstances: () => liveInstances(readStore) };
  const [tokens, joins] = await Promise.all([
    changed === undefined || tokensEnded(leases, changed, limits.rest.projectionWaitMs),
    revoked === undefined || sessionsEndedOnOthers(leases, revoked, limits.agent.sessionsEndedWaitMs),
  ]);
  return tokens && joins;
}

async function firstLine(signal: AbortSignal): Promise<string> {
  const lines = createInterface({ input: process.stdin, signal });
  for await (const line of lines) {
    lines.close();
    return line;
  }
  return '';
}
