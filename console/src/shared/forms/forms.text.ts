/** The words of forms. */
export const text = {
  cancel: 'Cancel',
  save: 'Save',
  needsRole: { viewer: '', operator: 'Only operators can change this.', admin: 'Only administrators can change this.' },
  edit: (name: string) => `Edit ${name}`,
  added: (type: string, name: string) => `${type} ${name} added.`,
  saved: (type: string, name: string) => `${type} ${name} saved.`,
  choose: 'Choose, or type to find',
  nothingFound: 'No matches',
  chooseFile: 'Choose a file',
  overtaken: 'Someone else changed this',
  changedBy: (name: string) => `Changed by ${name}`,
  notLost: 'Your changes are still here.',
  yours: 'Yours',
  theirs: 'Theirs',
  takeTheirs: 'Discard mine',
  keepMine: 'Keep mine',
} as const;
