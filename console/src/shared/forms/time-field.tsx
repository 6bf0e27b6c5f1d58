/**
 * A moment, picked by day and time in the reader's zone. Not the browser's own field, which has the look and language
 * of that browser. It loads with the pages that have one.
 */
import '@mantine/dates/styles.css';
import { DateTimePicker } from '@mantine/dates';
import dayjs from 'dayjs';
import type { ReactNode } from 'react';
import { text } from './forms.text.js';
import classes from './time-field.module.css';

/** As the picker has it, in the reader's zone. */
const picked = 'YYYY-MM-DD HH:mm:ss';
const shownAs = 'D MMM YYYY, HH:mm';

interface TimeFieldProps {
  readonly label: string;
  /** RFC 3339, as in the API. */
  readonly value: string | undefined;
  readonly onChange: (value: string | undefined) => void;
}

export function TimeField({ label, value, onChange }: TimeFieldProps): ReactNode {
  const time = value === undefined ? undefined : dayjs(value);
  const shown = time?.format(shownAs) ?? text.anyTime;
  return (
    <DateTimePicker
      aria-label={`${label} ${shown}`}
      classNames={{ day: classes.day }}
      leftSection={label}
      leftSectionWidth={48}
      w={230}
      placeholder={text.anyTime}
      valueFormat={shownAs}
      value={time?.format(picked) ?? null}
      onChange={(at) => onChange(at === null ? undefined : dayjs(at).toISOString())}
      clearable
      clearButtonProps={{ 'aria-label': text.clearTime(label) }}
      ariaLabels={text.calendar}
      timePickerProps={{ hoursInputLabel: text.hours, minutesInputLabel: text.minutes }}
      submitButtonProps={{ 'aria-label': text.takeTime }}
      popoverProps={{ attributes: { dropdown: { 'aria-label': label } } }}
    />
  );
}
