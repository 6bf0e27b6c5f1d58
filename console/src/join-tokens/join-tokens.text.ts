/** The words of the pages of join tokens. */
import { formatCount } from '../shared/ui/format.js';

const machines = (count: number): string => `${formatCount(count)} ${count === 1 ? 'machine' : 'machines'}`;

export const text = {
  title: 'Join tokens',
  caption: 'Tokens that let machines become nodes by themselves',
  add: 'Add machines',
  emptyTitle: 'No join tokens yet',
  empty: 'With one line, pasted into a root shell, a machine installs its agent and becomes a node.',
  nameHint: 'Says which machines it is for. Unique among tokens that still let machines in.',
  presetName: (at: string) => `Machines, ${at}`,
  uses: 'Machines',
  usesHint: 'How many may join with it, at most 1,000.',
  hours: 'Hours until it expires',
  labels: 'Labels of each node',
  prefix: 'Name prefix',
  prefixHint: 'Before the name that a machine has itself.',
  none: 'none',
  used: 'Used',
  usedOf: (used: number, uses: number) => `${formatCount(used)} of ${formatCount(uses)}`,
  state: 'State',
  expires: 'Expires',
  madeBy: 'Created by',
  removeMeaning: 'Machines that have not joined yet are refused. Nodes that have joined stay. This cannot be undone.',

  lineTitle: 'The line is shown only once',
  line: 'Line to paste',
  lineMeaning: (count: number) =>
    `Paste it into a root shell of ${count === 1 ? 'the machine' : `each of the ${machines(count)}`}. Whoever has it can add a node: treat it as a password.`,
  plainHttp:
    'The machine needs the agent first: over plain HTTP it is not installed from here. Set SVC_PUBLIC_URL to an https address for a line that installs it too.',
  withPsk: 'Add one node with a PSK',
  withPskMeaning: 'For a machine that runs another agent, or whose files you write yourself:',

  machinesTitle: 'Machines',
  machinesCaption: 'Machines that have joined with this token, newest first',
  progress: (joined: number, uses: number) => `${formatCount(joined)} of ${machines(uses)} joined`,
  waiting: 'Waiting for the first machine. It appears here as soon as it joins.',
  nobody: 'No machine has joined with it.',
  newest: (shown: number) => `The newest ${formatCount(shown)} are shown.`,
  node: 'Node',
  joinedAt: 'Joined',
} as const;
