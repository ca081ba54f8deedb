// A trial of each variant from its start to its end, warm-up included.

import { timeLine } from '../charts/index';
import { figure, seconds } from '../charts/format';
import { section } from '../elements';
import type { PageData, Table, TimeLine } from '../model';
import { Column, count, counted } from '../numbers';
import { Chooser, type Picture } from '../picture';
import type { View } from '../view';

export function trialOf(data: PageData, view: View): HTMLElement | null {
  const lines = data.time_lines.filter(({ at_s: at }) => at.length > 0);
  if (lines.length === 0) return null;
  const name = (line: TimeLine): string => data.variants[line.variant]?.name ?? '';
  const pictures = lines.map((line): Picture => ({
    heading: name(line),
    notes: notesOf(line),
    draw: () => timeLine(data, view, line.variant),
    table: () => tableOf(line),
  }));
  const chooser = new Chooser('Variant', pictures, lines.map(name));
  return section('trial', 'A trial, start to end', chooser.host);
}

function notesOf(line: TimeLine): string[] {
  const slices = line.at_s.length - line.warm_up;
  const notes = [`The trial of block ${line.block}: ${counted(line.warm_up, 'point')} of warm-up, shaded, which count for nothing, then ${counted(slices, 'point')} that count.`];
  const delay = line.loop_delay_us;
  if (delay !== null) {
    notes.push(`Event-loop delay, in captures apart from this trial: median ${figure('microseconds', delay[0])}, p99 ${figure('microseconds', delay[1])}.`);
  }
  return notes;
}

function tableOf(line: TimeLine): Table {
  const rate = new Column('per_second', line.rate_per_s);
  const time = new Column('microseconds', line.p99_us);
  const cores = new Column('cores', line.cores);
  const memory = new Column('bytes', line.rss_bytes);
  const stolen = new Column('share', line.steal_share);
  const rows = line.at_s.map((at, point) => [
    seconds(at),
    point < line.warm_up ? 'warm-up' : 'counts',
    rate.cell(line.rate_per_s[point]),
    ...[line.p50_us, line.p90_us, line.p99_us].map((values) => time.cell(values[point])),
    count(line.failed[point] ?? 0),
    cores.cell(line.cores[point]),
    memory.cell(line.rss_bytes[point]),
    stolen.cell(line.steal_share[point]),
  ]);
  const times = ['p50', 'p90', 'p99'].map((name) => time.head(name));
  const columns = ['at', 'part', rate.head('responses'), ...times, 'failed', 'cores', memory.head('memory'), stolen.head('taken by the host')];
  return { heading: '', columns, names: 2, rows };
}
