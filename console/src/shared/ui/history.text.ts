/** The words of plots over time. */
export const historyText = {
  title: 'Trends',
  span: 'Range',
  day: '24 hours',
  month: '30 days',
  off: 'The service records no history (SVC_HISTORY=off).',
  notDrawn: 'could not be drawn in this browser. Reload the page to try again.',
  traffic: 'Traffic',
  toClients: 'To clients',
  fromClients: 'From clients',
  sessionsOfStep: 'Sessions per 5 minutes',
  sessionsOfHour: 'Sessions per hour',
  sessions: 'Started',
  errors: 'Failed',
  roundTrip: 'Round trip',
  online: 'Time online',
} as const;
