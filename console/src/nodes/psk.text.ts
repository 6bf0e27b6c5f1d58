/** The words of the guided rotation of a node's PSK. */
export const pskText = {
  title: (name: string) => `Rotate the PSK of ${name}`,
  now: 'Now',
  current: 'Current PSK',
  issued: 'issued',
  session: 'Session',
  underCurrent: 'connected with the current PSK',
  none: 'none: its agent is not connected',
  candidate: 'Second PSK',
  validUntil: 'unused until now; valid until',
  noCandidate: 'none',
  steps: 'Without a gap',
  make: 'Make a second PSK',
  makeMeaning:
    'It is valid beside the current one, which goes on working. Nothing changes for the agent until its machine has the second one.',
  days: 'Days until it expires unused',
  makeIt: 'Make second PSK',
  another: 'Make another',
  anotherMeaning: 'Lost it? Another one replaces it.',
  put: 'Put it on the machine of the node',
  putMeaning:
    'As root on the machine. The agent opens a session with it beside the old one; its listeners and their connections stay.',
  secret: 'Second PSK',
  once: 'It is shown only now: copy it before you leave this page.',
  commands: 'Commands',
  prove: 'Its agent takes it',
  waiting: 'Waiting for a session with the second PSK. It comes at the reload, or within six hours by itself.',
  proveMeaning: 'The old one ends with the first session under the second PSK. This page shows it when it happens.',
  over: 'Done: its agent uses the new PSK, and the old one has ended.',
  gone: 'The second PSK is gone: it has expired, was taken back, or was replaced at once.',
  takeBack: 'Take back',
  takenBack: 'The second PSK was taken back.',
  takeBackTitle: 'Take back the second PSK?',
  takeBackMeaning:
    'It stops working at once. The current PSK stays; an agent that has only the second one can then not connect.',
  withoutPsk: 'This node has no PSK yet. Issue one on its page.',
  atOnce: 'At once instead',
  atOnceMeaning:
    'If somebody else may have the current PSK, do not wait: issue a new one on the page of the node. The old PSK and its sessions end before it answers.',
  toNode: 'Issue PSK at once',
} as const;

/** As `docs/how-to/rotate-keys.md` has them. */
export const pskCommands = 'gateway-agent identity --psk-file psk && systemctl reload gateway-agent && rm psk\n';
