/** The words of plots over time. */
export const historyText = {
  title: 'Trends',
  span: 'Range',
  spans: { '15m': '15 min', '1h': '1 h', day: '24 h', '30d': '30 d' },
  off: 'The service records no history (SVC_HISTORY=off).',
  empty: 'nothing reported in this time',
  notDrawn: 'could not be drawn in this browser. Reload the page to try again.',
  traffic: 'Traffic',
  toClients: 'To clients',
  fromClients: 'From clients',
  sessionsOf: { '1m': 'Sessions per minute', '5m': 'Sessions per 5 minutes', '1h': 'Sessions per hour' },
  sessions: 'Started',
  errors: 'Failed',
  failed: { '1m': 'Failed a minute', '5m': 'Failed in 5 minutes', '1h': 'Failed an hour' },
  roundTrip: 'Round trip',
  online: 'Time online',
} as const;
