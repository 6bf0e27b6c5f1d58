/**
 * What people come for, in clicks, typed texts and seconds: from nothing to the first byte, a chain of three hops over
 * TLS and REALITY in one form, from a dead upstream to the cause, a node by its address, 50 nodes labelled, a person
 * shut out, a machine added by the line to paste. With its own service, agents and target; steps that are not part of a
 * journey are done over REST.
 */
import { join } from 'node:path';
import type { Browser, Page } from 'playwright-core';
import { startAgentProcess } from '../../scripts/stack/agent.js';
import { fetchThrough, httpTarget } from '../../scripts/stack/demo-traffic.js';
import { eventually, freePorts, startProgram, type RunningProgram } from '../../scripts/stack/process.js';
import { rounded, type Figure } from '../figures.js';
import { password, withFolder, withService, type BenchService } from '../stack.js';
import { handOn, type Hand } from './hand.js';
import { openSignedIn, settled } from './pages.js';

/** What the journeys need besides the page. */
interface World {
  readonly service: BenchService;
  /** For the state of a machine. */
  readonly folder: string;
  readonly agents: RunningProgram[];
  readonly ports: readonly number[];
  readonly target: Awaited<ReturnType<typeof httpTarget>>;
}

const host = '127.0.0.1';
const withinMs = 60_000;
const labelled = 50;
const farAddress = '192.0.2.44';

/** In this order: the first needs an empty service, the others need what came before. */
const all: Readonly<Record<string, { readonly from: string; go(hand: Hand, world: World): Promise<void> }>> = {
  nothing_to_first_byte: { from: '/', go: firstByte },
  three_hops_tls_and_reality: { from: '/chains/new', go: threeHops },
  node_by_address: { from: '/', go: nodeByAddress },
  fifty_nodes_labelled: { from: '/nodes', go: fiftyLabelled },
  person_shut_out: { from: '/users', go: shutOut },
  machine_by_pasted_line: { from: '/join-tokens', go: pastedLine },
  dead_upstream_to_cause: { from: '/', go: deadUpstream },
};

export async function journeys(browser: Browser): Promise<Record<string, Figure>> {
  return withFolder((folder) =>
    withService({}, async (service) => {
      const target = await httpTarget('the target');
      const world = { service, folder, agents: [], ports: await freePorts(4), target };
      try {
        const page = await openSignedIn(browser, { url: service.process.url, username: 'admin', password });
        page.setDefaultTimeout(withinMs);
        const found: Record<string, Figure> = {};
        for (const [name, { from, go }] of Object.entries(all)) {
          await prepare[name]?.(world);
          await page.goto(`/console${from}`);
          await settled(page);
          const hand = handOn(page);
          const began = performance.now();
          await go(hand, world);
          found[name] = { ...hand.counts(), seconds: rounded((performance.now() - began) / 1_000) };
        }
        return found;
      } finally {
        await Promise.all(world.agents.map((agent: RunningProgram) => agent.stop()));
        target.close();
      }
    }),
  );
}

const make = ({ service }: World, path: string, body: object) =>
  service.admin.call<{ id: string; control_psk: string }>('POST', path, body);

/** What must exist before a journey begins. */
const prepare: Readonly<Record<string, (world: World) => Promise<void>>> = {
  async three_hops_tls_and_reality(world) {
    for (const name of ['relay-1', 'exit-1']) {
      const node = await make(world, '/api/nodes', { name, address: host });
      startAgent(world, node.id, node.control_psk);
    }
    const keys = await make(world, '/api/credentials', { name: 'keys', key_type: 'x25519' });
    await make(world, '/api/credentials', {
      name: 'cover',
      key_type: 'reality',
      x25519_credential_id: keys.id,
      server_names: ['cover.example'],
      short_ids: ['5eed'],
      target_host: host,
      target_port: 443,
    });
    const certificate = { common_name: 'front.example' };
    await make(world, '/api/credentials', { name: 'front', key_type: 'tls_cert', self_signed: certificate });
  },
  async node_by_address(world) {
    await make(world, '/api/nodes', { name: 'far', address: farAddress });
  },
  async fifty_nodes_labelled(world) {
    for (let index = 0; index < labelled; index += 1) await make(world, '/api/nodes', { name: `pop-${index}` });
  },
  async person_shut_out(world) {
    await make(world, '/api/auth/users', { username: 'kim', password: 'a password of a person', role: 'operator' });
  },
  async dead_upstream_to_cause({ service, target }) {
    target.close();
    await eventually(
      'the service knows that the upstream is dead',
      async () => {
        const { matters } = await service.admin.call<{ matters: readonly { cause: string | null }[] }>(
          'GET',
          '/api/dashboard/stats',
        );
        return matters.some(({ cause }) => cause === 'upstream_unhealthy') || undefined;
      },
      withinMs,
    );
  },
};

function startAgent({ service, agents }: World, nodeId: string, controlPsk: string): void {
  agents.push(startAgentProcess({ nodeId, controlEndpoint: service.process.controlEndpoint, controlPsk }));
}

const button = (page: Page, name: string) => page.getByRole('button', { name, exact: true });
const link = (page: Page, name: string) => page.getByRole('link', { name, exact: true }).first();
/** Required ones have a star. */
const field = (page: Page, label: string, place = 0) => page.getByLabel(new RegExp(`^${label}( \\*)?$`)).nth(place);

async function firstByte(hand: Hand, world: World): Promise<void> {
  const { page } = hand;
  await hand.click(link(page, 'Add a node'));
  await hand.type(field(page, 'Name'), 'edge-1');
  await hand.type(field(page, 'Address'), host);
  await hand.click(button(page, 'Add node'));
  const environment = await page.getByRole('textbox', { name: /^Environment file/ }).inputValue();
  const [nodeId = '', psk = ''] = ['ID', 'CONTROL_PSK'].map((name) => {
    const [, value = ''] = new RegExp(`_${name}=(\\S+)`).exec(environment) ?? [];
    return value;
  });
  startAgent(world, nodeId, psk);
  await page.getByText('Its agent is online').waitFor();
  await hand.click(button(page, 'I have saved the PSK'));
  await hand.click(page.getByRole('navigation').getByRole('link', { name: /^Overview/ }));
  await hand.click(link(page, 'Add a target'));
  await hand.type(field(page, 'Name'), 'web');
  await hand.type(field(page, 'Endpoint'), `${host}:${world.target.port}`);
  await hand.click(button(page, 'Add upstream'));
  await page.getByRole('heading', { name: 'web', level: 1 }).waitFor();
  await hand.click(page.getByRole('navigation').getByRole('link', { name: /^Overview/ }));
  await hand.click(link(page, 'Build a chain'));
  await hand.type(field(page, 'Name'), 'front');
  await hand.pick(field(page, 'Node'), 'edge-1');
  await hand.type(field(page, 'Port'), String(world.ports[0]));
  await hand.pick(field(page, 'Upstream'), 'web');
  await hand.click(button(page, 'Add and deploy'));
  await page.getByText('applied on every node').waitFor();
  await fetchThrough(world.ports[0] ?? 0);
}

async function threeHops(hand: Hand, { ports }: World): Promise<void> {
  const { page } = hand;
  await hand.type(field(page, 'Name'), 'front over two');
  for (const [place, [node, transport, credential]] of (
    [
      ['edge-1', 'TLS over TCP', 'front'],
      ['relay-1', 'REALITY over TCP', 'cover'],
      ['exit-1', undefined, undefined],
    ] as const
  ).entries()) {
    if (place > 0) await hand.click(button(page, 'Add hop'));
    await hand.pick(field(page, 'Node', place), node);
    if (transport === undefined) continue;
    await hand.pick(field(page, 'Transport', place), transport);
    const chosen = field(page, 'Credential', place);
    const fits = async () => (await chosen.inputValue()) === credential || undefined;
    await eventually('the only credential that fits is chosen', fits, withinMs);
  }
  // The console suggests free ports of each node, but these agents share one machine.
  for (const place of [0, 1, 2]) await field(page, 'Port', place).fill(String(ports[place + 1]));
  await hand.pick(field(page, 'Upstream'), 'web');
  await hand.click(button(page, 'Add and deploy'));
  await page.getByText('applied on every node').waitFor();
}

async function nodeByAddress({ page, ...hand }: Hand): Promise<void> {
  await page.keyboard.press('Control+k');
  await hand.type(page.getByRole('combobox', { name: /^Find anything/ }), farAddress);
  await page.keyboard.press('Enter');
  await page.getByRole('heading', { name: 'far', level: 1 }).waitFor();
}

async function fiftyLabelled({ page, ...hand }: Hand): Promise<void> {
  await hand.click(page.getByRole('checkbox', { name: 'Choose all on this page' }));
  await hand.click(button(page, 'Labels'));
  await hand.type(page.getByRole('dialog').getByRole('combobox').first(), 'region:eu');
  await page.keyboard.press('Enter');
  await hand.click(page.getByRole('dialog').getByRole('button', { name: 'Save' }));
  await page.getByText(`Labels of ${labelled} nodes changed.`).waitFor();
}

async function shutOut({ page, ...hand }: Hand): Promise<void> {
  await hand.click(link(page, 'kim'));
  await hand.click(button(page, 'Shut out'));
  await hand.click(page.getByRole('dialog').getByRole('button', { name: 'Shut out', exact: true }));
  await page.getByText('kim is shut out.').waitFor();
}

async function pastedLine(hand: Hand, { service, folder, agents }: World): Promise<void> {
  const { page } = hand;
  await hand.click(link(page, 'Add machines'));
  await hand.click(button(page, 'Add machines'));
  const line = await page.getByRole('textbox', { name: 'Line to paste' }).inputValue();
  const [token = ''] = /svcjoin1_[\w-]+/.exec(line) ?? [];
  agents.push(
    startProgram('agent/main', {
      SVC_JOIN_TOKEN: token,
      SVC_CONTROL_ENDPOINT: service.process.controlEndpoint,
      SVC_AGENT_STATE_DIR: join(folder, 'joined'),
    }),
  );
  await page.getByText(/^1 of 1 machines? joined/).waitFor();
}

/** The overview names the upstream; one click leads to a chain that it stops, which says who reports it. */
async function deadUpstream({ page, ...hand }: Hand): Promise<void> {
  await page
    .getByText(/upstream "web" is unhealthy/)
    .first()
    .waitFor();
  await hand.click(page.getByRole('main').getByRole('link', { name: 'front', exact: true }).first());
  await page.getByText(/upstream "web" is unhealthy, as "\S+" reports/).waitFor();
}
