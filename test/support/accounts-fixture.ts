/** The accounts of one instance: gateway, view, sign-in and facts, on the stores of a command fixture. */
import { randomBytes } from 'node:crypto';
import type { AccountHandlerOptions } from '../../src/accounts/parts.js';
import { createAccountHandlers } from '../../src/accounts/handlers.js';
import { openTokenUses } from '../../src/accounts/token-uses.js';
import { accountsAggregate } from '../../src/commands/aggregate.js';
import { createFactRecorder } from '../../src/commands/facts.js';
import { ensureFirstAdmin } from '../../src/app/first-admin.js';
import { createGateway } from '../../src/commands/gateway.js';
import type { FactRecorder } from '../../src/commands/port.js';
import type { AccountsHandlers } from '../../src/commands/accounts-port.js';
import { openAccounts } from '../../src/projections/accounts.js';
import { followInMemory } from '../../src/projections/log-follower.js';
import { randomIds } from '../../src/kernel/ids.js';
import { silentLogger } from '../../src/kernel/logger.js';
import { bodyHashBlinder, createPasswordHasher } from '../../src/security/passwords.js';
import { createLoginLimiter } from '../../src/security/login-limiter.js';
import { createTokens } from '../../src/security/tokens.js';
import type { CommandFixture } from './command-fixture.js';
import { until } from './delivery-fixture.js';
import { testKeyring } from './keyring.js';

export interface AccountsInstance extends AccountHandlerOptions {
  readonly facts: FactRecorder;
  readonly handlers: AccountsHandlers;
  /** `dataDir` is the instance's own; without a password it writes one there. */
  firstAdmin(dataDir: string, password?: string): Promise<void>;
  close(): Promise<void>;
}

const seed = randomBytes(32);

export async function startAccounts(
  fixture: CommandFixture,
  overrides: Partial<Omit<AccountHandlerOptions, 'facts'>> = {},
): Promise<AccountsInstance> {
  const { clock, store: eventStore } = fixture;
  const keyring = testKeyring();
  const logger = overrides.logger ?? silentLogger;
  const view = openAccounts(eventStore, fixture.options.logChain, logger);
  const follower = followInMemory({ eventStore, logger, folds: [view] });
  await until(() => view.caughtUp() || view.failure() !== undefined, 'the accounts are read');
  const failure = view.failure();
  if (failure !== undefined) {
    await follower.close();
    throw new Error(failure);
  }
  const facts = createFactRecorder(fixture.options);
  const parts: AccountHandlerOptions = {
    gateway:
      overrides.gateway ?? createGateway(accountsAggregate, { ...view, state: () => view.accounts }, fixture.options),
    view,
    keyring,
    hasher: createPasswordHasher(),
    limiter: createLoginLimiter({ clock }),
    tokens: createTokens({ seed, ttlSeconds: 43_200, clock }),
    facts,
    uses: await openTokenUses({
      readStore: fixture.stores.readStore,
      clock,
      logger,
      away: () => false,
      isGone: () => false,
    }),
    refusals: { note: () => undefined },
    clock,
    ids: randomIds,
    logger: silentLogger,
    tokensEnded: async () => true,
    deleteJoinTokens: async () => 0,
    blindBodyHash: bodyHashBlinder(seed),
    ...overrides,
  };
  return {
    ...parts,
    facts,
    handlers: createAccountHandlers(parts),
    firstAdmin: (dataDir, password) =>
      ensureFirstAdmin({ ...parts, ids: randomIds, logger: silentLogger, password, dataDir }),
    async close() {
      await facts.close();
      await parts.uses.close();
      await parts.gateway.close();
      await follower.close();
      view.close();
      parts.hasher.close();
      parts.limiter.close();
    },
  };
}
