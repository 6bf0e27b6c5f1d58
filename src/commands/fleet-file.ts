/**
 * The handlers of the fleet as a file: what a document would change, found on the committed fleet without holding up
 * anything else, and the commands that change it. The rules are in `src/domain/fleet-file`; what became of an apply, and
 * its revert, in `fleet-applies.ts`. Implements `docs/contract/automation.md#the-fleet-as-a-file`.
 */
import type { ApplyDocument } from '../domain/fleet-file/apply.js';
import { changedMeanwhile } from '../domain/fleet-file/apply.js';
import { resolveNames } from '../domain/fleet-file/resolve.js';
import type { FleetApplied } from '../domain/fleet-set/declaration.js';
import { ownerOf } from '../domain/references/references.js';
import type { RecordedCommand } from '../kernel/event.js';
import { streams } from '../kernel/event.js';
import { ServiceError } from '../kernel/errors.js';
import type { Keyring } from '../security/keyring.js';
import type { AppliesOptions } from './fleet-applies.js';
import { createAppliesHandlers } from './fleet-applies.js';
import { withKeys } from './fleet-file-keys.js';
import type { Worked } from './fleet-file-plan.js';
import { mistaken, namesIn, workedOut } from './fleet-file-plan.js';
import type { ApplyRequest, CommandHandlers, FileApplied, FileRequest } from './handlers-port.js';
import { inPiecesAlone } from './in-pieces.js';
import { issuePsk } from './nodes.js';
import type { CommandContext } from './port.js';
import { tuning } from './tuning.js';

interface FleetFileOptions extends AppliesOptions {
  readonly keyring: Keyring;
  /** 32 bytes, part of every PSK. */
  readonly servicePublic: Uint8Array;
}

export function createFleetFileHandlers(options: FleetFileOptions): CommandHandlers['fleetFile'] {
  const { gateway, keyring, clock } = options;
  const applies = createAppliesHandlers(options);

  /** @param psks where PSKs of new nodes are kept, when they are to be issued */
  async function worked(request: FileRequest, presume: boolean, psks?: Map<string, string>): Promise<Worked> {
    // Behind all commands before, at the end of the log.
    await gateway.read(() => undefined);
    const names = await inPiecesAlone(options, (fleet) => resolveNames(fleet, request.document));
    const { document, mistakes, generated } = await withKeys(options.fleet(), request.document, names, {
      now: clock.now(),
      presume,
      psk(id) {
        if (psks === undefined) return null;
        const { controlPsk, psk } = issuePsk(options, id);
        psks.set(id, controlPsk);
        return psk;
      },
      seal(id, { privateKey }) {
        if (privateKey === undefined) return null;
        const sealed = keyring.seal(privateKey, { stream: streams.fleet, resourceId: id, field: 'private_key' });
        privateKey.fill(0);
        return sealed;
      },
    });
    if (mistakes.length > 0) return { document, said: {}, versions: [], parts: [], plan: mistaken(mistakes) };
    return inPiecesAlone(options, (fleet) => workedOut(fleet, { ...request, document }, generated));
  }

  return {
    ...applies,
    plan: async (request) => (await worked(request, true)).plan,
    async apply(context, request, ifMatch) {
      for (let attempt = 1; ; attempt += 1) {
        const psks = request.issuePsks ? new Map<string, string>() : undefined;
        const work = await worked(request, false, psks);
        const { mistakes, etag, obstacles } = work.plan;
        if (mistakes.length > 0) return { kind: 'mistakes', mistakes };
        const known = await applies.repeated(context, request);
        if (known !== undefined) return known;
        if (ifMatch !== undefined && ifMatch !== '*' && !ifMatch.includes(etag)) {
          throw new ServiceError('precondition_failed', `If-Match: ${changedMeanwhile}`);
        }
        if (obstacles.length > 0) throw new ServiceError('conflict', obstacles.slice(0, 50).join('; '));
        try {
          return await carriedOut(context, request, work, psks ?? new Map());
        } catch (error) {
          const moved = error instanceof ServiceError && error.code === 'precondition_failed';
          if (!moved || ifMatch !== undefined || attempt >= tuning.fileAttempts) throw error;
        }
      }
    },
  };

  /** Writes the commands one after the other. What stands when a later one is refused stands. */
  async function carriedOut(
    context: CommandContext,
    { digest, document }: ApplyRequest,
    { said, versions, parts }: Worked,
    psks: ReadonlyMap<string, string>,
  ): Promise<FileApplied> {
    const applyId = options.ids.next();
    const commands: RecordedCommand[] = [];
    let position = options.fleet().position.value;
    const done = (incomplete: Extract<FileApplied, { kind: 'done' }>['incomplete']): FileApplied => {
      const names = namesIn(document);
      const issued = new Set(commands.flatMap(({ events }) => events.map(({ data }) => data['node_id'])));
      const controlPsks = [...psks]
        .filter(([id]) => issued.has(id))
        .map(([id, controlPsk]) => ({ node: names.get(id) ?? id, controlPsk }));
      return { kind: 'done', applyId, set: document.set, commands, controlPsks, incomplete, position };
    };
    const seen = new Map(versions.map((one) => [ownerOf(one[0], one[1]), [one]]));
    /** What the commands before have changed themselves. */
    const changed = new Set<string>();
    for (const [index, steps] of parts.entries()) {
      const first = index === 0;
      const wishes = steps.map(({ wish }) => wish);
      const mine = new Set(wishes.map(({ resource: { type, id } }) => ownerOf(type, id)));
      const unseen = [...mine].filter((owner) => !changed.has(owner));
      const { former, left } = (commands[0]?.events[0].data ?? {}) as unknown as Partial<FleetApplied['data']>;
      const applied: FleetApplied['data'] = {
        apply_id: applyId,
        name: document.set,
        document_sha256: digest,
        part: index + 1,
        parts: parts.length,
        ...(first ? said : {}),
        ...(former === undefined ? {} : { former }),
        ...(left === undefined ? {} : { left }),
      };
      const command: ApplyDocument = {
        type: 'ApplyDocument',
        applied,
        wishes,
        // Nothing that somebody edits between two commands is overwritten.
        versions: first ? versions : unseen.flatMap((owner) => seen.get(owner) ?? []),
      };
      for (const owner of mine) changed.add(owner);
      // A key stands for the whole apply, so its first command carries it.
      const given = first ? context : { ...context, idempotency: undefined };
      try {
        const result = await gateway.execute(command, given, () => undefined);
        if (result.kind !== 'done') throw new ServiceError('conflict', 'the same apply is under way; try again');
        const [begun, ...rest] = result.events;
        if (begun !== undefined) commands.push({ stream: streams.fleet, events: [begun, ...rest] });
        ({ position } = result);
      } catch (error) {
        if (first || !(error instanceof ServiceError)) throw error;
        return done({ error: `${error.code}: ${error.message}`, commandsLeft: parts.length - index });
      }
    }
    return done(null);
  }
}
