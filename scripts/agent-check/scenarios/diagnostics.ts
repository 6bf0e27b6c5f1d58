/** RUN_DIAGNOSTICS: what an agent with the feature answers about a rule that leads somewhere and one that does not. */
import { Command } from '../../../src/gen/svc/control/v1/command.js';
import { limits } from '../../../src/kernel/limits.js';
import { applied, expectOf, firstSession, liveSession, saidOf, staysAway, type Scenario } from '../play.js';
import { freePort, makeSnapshot } from '../site.js';

const seconds = 2;
const watchedMs = 5_000;

export const diagnostics: Scenario = {
  name: 'diagnostics',
  about: 'the command RUN_DIAGNOSTICS, with a next hop where nobody listens; for agents with the feature',
  async play(play) {
    const { node, site, check } = play;
    node.plays.grant.heartbeatIntervalSecs = seconds;
    const [open, closed] = [await freePort(), await freePort()];
    const dead = `127.0.0.1:${await freePort()}`;
    const session = await firstSession(play);
    if (saidOf(session, 'hello')[0]?.features.includes('diagnostics') !== true) return;
    const [alive, lost] = [
      makeSnapshot(node, site, { ports: [open] }),
      makeSnapshot(node, { upstream: dead }, { ports: [closed] }),
    ];
    const rules = [...(alive.gateway?.tcpProxyRules ?? []), ...(lost.gateway?.tcpProxyRules ?? [])];
    await applied(play, { ...lost, gateway: lost.gateway && { ...lost.gateway, tcpProxyRules: rules } });
    node.plays.commands = [Command.RUN_DIAGNOSTICS];
    const report = await expectOf(
      play,
      'diagnostics',
      'no DiagnosticsReport',
      () => saidOf(liveSession(play), 'diagnostics')[0],
      limits.agent.diagnostics.answerMs + seconds * 1000,
    );
    const texts = report.items.map(({ name, value }) => `${name} ${value}`);
    for (const place of [`127.0.0.1:${open}`, `127.0.0.1:${closed}`, site.upstream, dead]) {
      check(
        'diagnosticsItems',
        texts.some((text) => text.includes(place)),
        `no item names ${place}`,
      );
    }
    const ofDead = report.items.filter(({ name, value }) => `${name} ${value}`.includes(dead));
    check('diagnosticsOk', !ofDead.some(({ ok }) => ok), `ok for ${dead}, where nobody listens`);
    const all = [...texts, ...report.log].join('\n');
    const shows = node.secretTexts.some((secret) => all.includes(secret));
    check('diagnosticsSecrets', !shows, 'the report shows the PSK, or a key that comes from it');
    // Whatever comes now was not asked for, and is noted as such.
    await staysAway(play, () => saidOf(liveSession(play), 'diagnostics')[1], watchedMs);
  },
};
