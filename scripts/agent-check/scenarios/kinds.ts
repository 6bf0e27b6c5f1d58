/** One snapshot of each kind of rule: an agent runs it, or rejects it and names the field that it cannot run. */
import { snapshotFixtures } from '../../agent-fixtures/snapshots.js';
import { ConfigApplyStatus, type RuntimeConfigSnapshot } from '../../../src/gen/svc/control/v1/config.js';
import type { RuleOrigin } from '../../../src/gen/svc/control/v1/transport.js';
import { firstSession, reportOn, type Scenario } from '../play.js';
import { freePort } from '../site.js';

/** The origins of a snapshot's rules, and the settings, which multiplexing comes from. */
function originsOf({ gateway, l3 }: RuntimeConfigSnapshot): ReadonlySet<string> {
  const rules: readonly { readonly origin: RuleOrigin | undefined }[] = [
    ...(gateway?.tcpProxyRules ?? []),
    ...(gateway?.httpProxyRules ?? []),
    ...(gateway?.quicRules ?? []),
    ...(gateway?.udpRules ?? []),
    ...(l3?.rules ?? []),
  ];
  const names = rules.map(({ origin }) => `${origin?.resourceType ?? ''} ${origin?.resourceId ?? ''}`);
  return new Set([...names, 'connectivity connectivity']);
}

export const kinds: Scenario = {
  name: 'kinds',
  about: 'one snapshot of each kind of rule (examples/fixtures): run, or rejected with the field that asks for it',
  async play(play) {
    const { node, check } = play;
    await firstSession(play);
    for (const { name, snapshot } of snapshotFixtures) {
      const place = { nodeId: node.nodeId, address: '127.0.0.1', port: await freePort() };
      const made = snapshot({ ...place, generation: node.nextGeneration() });
      const { status, errors } = await reportOn(play, made);
      if (status === ConfigApplyStatus.APPLIED) continue;
      check('unsupported', errors.length > 0, `${name}: rejected without an error`);
      const origins = originsOf(made);
      for (const { resourceType, resourceId, path, message } of errors) {
        const named = `"${resourceType} ${resourceId}", path "${path}"`;
        check('origin', origins.has(`${resourceType} ${resourceId}`), `${name}: an error about ${named}`);
        check('unsupported', path !== '' && message !== '', `${name}: an error about ${named} without path or message`);
      }
    }
  },
};
