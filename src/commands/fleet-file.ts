/**
 * Handlers of the fleet as a file: plan and apply of a document. Plans are made on the committed fleet in pieces, so they
 * hold up nothing else. The rules are in `src/domain/fleet-file`; applies that were carried out are in `fleet-applies.ts`.
 * Implements `docs/contract/automation.md#the-fleet-as-a-file`.
 */
import { changedMeanwhile, type ApplyDocument } from '../domain/fleet-file/apply.js';
import { resolveNames } from '../domain/fleet-file/resolve.js';
import type { FleetApplied } from '../domain/fleet-set/declaration.js';
import { ownerOf } from '../domain/references/references.js';
import { pick } from '../domain/resource/lifecycle.js';
import type { RecordedCommand } from '../kernel/event.js';
import { ServiceError } from '../kernel/errors.js';
import { createAppliesHandlers, withoutKey, written, type AppliesOptions } from './fleet-applies.js';
import { sealPrivateKey } from './credentials.js';
import { withKeys } from './fleet-file-keys.js';
import { mistaken, namesIn, planDocument, type Planned } from './fleet-file-plan.js';
import type { FleetFileHandlers, ApplyRequest, FileApplied, FileRequest } from './fleet-file-port.js';
import { inPiecesAlone } from './in-pieces.js';
import { issuePsk, type PskMaker } from './node-psks.js';
import type { CommandContext } from './port.js';
import { nothingPlanned, OnlyPlanned, refuseSeveral } from './rollouts.js';
import { tuning } from './tuning.js';

interface FleetFileOptions extends AppliesOptions, PskMaker {}

export function createFleetFileHandlers(options: FleetFileOptions): FleetFileHandlers {
  const { gateway, keyring, clock } = options;
  const applies = createAppliesHandlers(options);

  /** @param psks receives the PSKs of new nodes; undefined to issue none */
  async function planned(request: FileRequest, presume: boolean, psks?: Map<string, string>): Promise<Planned> {
    // Waits for earlier commands, up to the end of the log.
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
      seal: (id, material) => sealPrivateKey(keyring, id, material),
    });
    if (mistakes.length > 0) return { document, scope: {}, versions: [], parts: [], plan: mistaken(mistakes) };
    return inPiecesAlone(options, (fleet) => planDocument(fleet, { ...request, document }, generated));
  }

  return {
    ...applies,
    plan: async (request) => (await planned(request, true)).plan,
    async apply(context, request, ifMatch) {
      for (let attempt = 1; ; attempt += 1) {
        const psks = request.issuePsks ? new Map<string, string>() : undefined;
        const plan = await planned(request, false, psks);
        const { mistakes, etag, obstacles } = plan.plan;
        if (mistakes.length > 0) return { kind: 'mistakes', mistakes };
        const known = await applies.repeated(context, request);
        if (known !== undefined) return known;
        if (ifMatch !== undefined && ifMatch !== '*' && !ifMatch.includes(etag)) {
          throw new ServiceError('precondition_failed', `If-Match: ${changedMeanwhile}`);
        }
        if (obstacles.length > 0) throw new ServiceError('conflict', obstacles.slice(0, 50).join('; '));
        try {
          return await carryOut(options, context, request, plan, psks ?? new Map());
        } catch (error) {
          const moved = error instanceof ServiceError && error.code === 'precondition_failed';
          if (!moved || ifMatch !== undefined || attempt >= tuning.fileAttempts) throw error;
        }
      }
    },
  };
}

/** Writes the commands one after the other. If a later one is refused, the earlier ones stay. */
async function carryOut(
  { gateway, fleet, ids }: FleetFileOptions,
  context: CommandContext,
  { digest, document }: ApplyRequest,
  { scope, versions, parts }: Planned,
  psks: ReadonlyMap<string, string>,
): Promise<FileApplied> {
  if (parts.length > 1) refuseSeveral(fleet(), context.rollout, 'the apply');
  if (parts.length === 0 && context.rollout?.dryRun === true) throw new OnlyPlanned(nothingPlanned);
  const applyId = ids.next();
  const commands: RecordedCommand[] = [];
  let position = fleet().position.value;
  const done = (incomplete: Extract<FileApplied, { kind: 'done' }>['incomplete']): FileApplied => {
    const names = namesIn(document);
    const issued = new Set(commands.flatMap(({ events }) => events.map(({ data }) => data['node_id'])));
    const controlPsks = [...psks]
      .filter(([id]) => issued.has(id))
      .map(([id, controlPsk]) => ({ node: names.get(id) ?? id, controlPsk }));
    return { kind: 'done', applyId, set: document.set, commands, controlPsks, incomplete, position };
  };
  const compared = new Map(versions.map((one) => [ownerOf(one[0], one[1]), [one]]));
  /** The resources that earlier commands of this apply changed. */
  const changed = new Set<string>();
  for (const [index, steps] of parts.entries()) {
    const first = index === 0;
    const changes = steps.map(({ change }) => change);
    const owners = new Set(changes.map(({ resource: { type, id } }) => ownerOf(type, id)));
    const unchanged = [...owners].filter((owner) => !changed.has(owner));
    const begin: Partial<FleetApplied['data']> = commands[0]?.events[0].data ?? {};
    const applied: FleetApplied['data'] = {
      apply_id: applyId,
      name: document.set,
      document_sha256: digest,
      part: index + 1,
      parts: parts.length,
      ...(first ? scope : {}),
      ...pick(begin, ['former', 'left']),
    };
    const command: ApplyDocument = {
      type: 'ApplyDocument',
      applied,
      changes,
      // Keeps a later command from overwriting what somebody edits between two commands.
      versions: first ? versions : unchanged.flatMap((owner) => compared.get(owner) ?? []),
    };
    for (const owner of owners) changed.add(owner);
    try {
      const outcome = await gateway.execute(command, first ? context : withoutKey(context), () => undefined);
      commands.push(...written(outcome, 'apply'));
      ({ position } = outcome);
    } catch (error) {
      if (first || !(error instanceof ServiceError)) throw error;
      return done({ error: `${error.code}: ${error.message}`, commandsLeft: parts.length - index });
    }
  }
  return done(null);
}
