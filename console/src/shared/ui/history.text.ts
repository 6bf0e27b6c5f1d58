/** The words of plots over time. */
export const historyText = {
  title: 'Over time',
  span: 'How far back',
  day: '24 hours',
  month: '30 days',
  off: 'The service keeps no history: it runs with SVC_HISTORY=off.',
  notDrawn: 'it could not be drawn in this browser. Load the page again to try once more.',
  traffic: 'Traffic',
  toClients: 'To clients',
  fromClients: 'From clients',
  sessionsOfStep: 'Sessions begun in 5 minutes',
  sessionsOfHour: 'Sessions begun in an hour',
  sessions: 'Begun',
  errors: 'Failed',
  roundTrip: 'Round trip',
  online: 'Share of the time online',
} as const;
