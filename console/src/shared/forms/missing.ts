/** Finds all empty required fields of a form at once, and brings the reader to the first mistake. */

/** @returns the words for each, by its path */
export function missingIn(
  form: HTMLElement,
  valueAt: (path: string) => unknown,
  words: (label: string) => string,
): Readonly<Record<string, string>> {
  const required = [...form.querySelectorAll<HTMLInputElement>('[data-path]:is(input, textarea):required')];
  const missing = required.filter(({ dataset }) => isEmpty(valueAt(dataset['path'] ?? '')));
  return Object.fromEntries(missing.map((field) => [field.dataset['path'] ?? '', words(labelOf(field))]));
}

const isEmpty = (value: unknown): boolean =>
  value === '' || value === null || value === undefined || (Array.isArray(value) && value.length === 0);

/** Without the star of a required field. */
const labelOf = ({ labels }: HTMLInputElement): string => labels?.[0]?.textContent?.replace(/\s*\*$/, '') ?? '';

/** Brings the reader to the first mistake. Call it once the mistakes are on the page. */
export function goToFirstMistake(form: HTMLElement): void {
  const field = form.querySelector<HTMLElement>('[aria-invalid=true]');
  field?.focus();
  field?.scrollIntoView({ block: 'center' });
}
