/** The words of the pages of users. */
export const text = {
  title: 'Users',
  caption: 'People who may sign in',
  add: 'Add user',
  emptyTitle: 'No users yet',
  empty: 'Add one for each person.',
  username: 'User name',
  usernameHint: 'Lower-case letters, digits, dots, dashes and underscores. Cannot be changed later.',
  displayName: 'Full name',
  email: 'Email',
  role: 'Role',
  roleHint: 'Cannot be changed later.',
  roles: { viewer: 'Viewer', operator: 'Operator', admin: 'Administrator' },
  roleMeanings: {
    viewer: 'Sees everything except users and webhooks.',
    operator: 'Also changes the fleet.',
    admin: 'Also manages users and webhooks.',
  },
  created: 'Added',
  reset: 'Reset password',
  resetTitle: (name: string) => `Reset password of ${name}`,
  resetMeaning:
    'Ends every session and API token of this person at once. It cannot be undone. For somebody who leaves, there is “Shut out”.',
  resetNow: 'Reset password',
  resetDone: (name: string) => `Password of ${name} reset. All their sessions and API tokens have ended.`,
  shutOut: 'Shut out',
  shutOutTitle: (name: string) => `Shut out ${name}?`,
  shutOutMeaning:
    'The password becomes one that nobody knows. Every session and API token of this person ends at once, and join tokens made by them are deleted. What they did stays. This cannot be undone, but a new password lets them in again.',
  shutOutDone: (name: string, tokens: number) =>
    tokens === 0 ? `${name} is shut out.` : `${name} is shut out. Join tokens deleted: ${tokens}.`,
  password: 'Password',
  passwordHint: 'At least 12 characters. The person changes it after signing in.',
} as const;
