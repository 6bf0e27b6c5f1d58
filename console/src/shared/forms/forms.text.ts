/** The words of forms. */
export const text = {
  cancel: 'Cancel',
  choose: 'Choose, or type to find',
  nothingFound: 'Nothing has this in its name.',
  chooseFile: 'Choose a file',
  overtaken: 'Somebody else changed this meanwhile',
  changedBy: (name: string) => `Changed by ${name}`,
  notLost: 'What you typed is still here.',
  yours: 'Yours',
  theirs: 'Now stored',
  takeTheirs: 'Use what is stored',
  keepMine: 'Keep mine, to save it over theirs',
} as const;
