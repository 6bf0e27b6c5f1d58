/** The words of the diagnostics of a node. */
export const text = {
  title: 'Diagnostics',
  run: 'Run diagnostics',
  queued: 'Waiting for the agent to fetch the command',
  delivered: 'The agent checks itself; that takes up to 30 seconds',
  expired: 'The agent did not fetch the last command within ten minutes',
  silent: 'The agent fetched the last command and sent no report',
  offline: 'The node is offline: it gets the command if it returns within ten minutes.',
  none: 'Never run. The agent checks its machine, its listeners, and everything that its rules dial.',
  report: 'Report',
  wrong: (count: number) => (count === 1 ? '1 needs attention' : `${count} need attention`),
  allWell: 'everything answers',
  caption: 'What the agent looked at, what needs attention first',
  item: 'Looked at',
  value: 'Found',
  log: (lines: number) => `Log of the agent, last ${lines} lines`,
  kept: 'Kept for 7 days.',
} as const;
