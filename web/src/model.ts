// @generated from page.schema.json by `npm run model`: what the page is drawn from. Change crates/report/src/page/model.rs.

/**
 * The verdict's kind.
 */
export type Outcome = 'better' | 'worse' | 'equivalent' | 'inconclusive' | 'void' | 'no_success';
/**
 * `void`, `warning` or `note`.
 */
export type Grade = 'void' | 'warning' | 'note';
/**
 * Its unit.
 */
export type Unit = 'per_second' | 'microseconds' | 'bytes' | 'share' | 'count' | 'cores';
/**
 * Its unit.
 */
export type Unit1 = 'per_second' | 'microseconds' | 'bytes' | 'share' | 'count' | 'cores';
/**
 * How the run stands, for the colour of that sentence.
 */
export type State = 'decided' | 'open' | 'void' | 'measured' | 'broken';
/**
 * The verdict's kind.
 */
export type Outcome1 = 'better' | 'worse' | 'equivalent' | 'inconclusive' | 'void' | 'no_success';

/**
 * A report, as the page shows it from top to bottom.
 */
export interface PageData {
  /**
   * The answer in one sentence, for somebody who reads nothing else.
   */
  answer: string;
  /**
   * What the result takes for granted.
   */
  assumptions: Assumption[];
  /**
   * The command that was given, quoted for a shell.
   */
  command: string;
  /**
   * When the record was made, RFC 3339 in UTC.
   */
  created: string;
  /**
   * Main effects and interactions; `None` without two factors.
   */
  effects: Effects | null;
  /**
   * Errors, by variant, phase and cause; unexpected responses are the phase `response`.
   */
  errors: ErrorRow[];
  /**
   * Name of the experiment.
   */
  experiment: string;
  /**
   * The command that explains them on a terminal; `None` where there are none.
   */
  explained_by: string | null;
  figures: Table;
  /**
   * Findings, the gravest first.
   */
  findings: Finding[];
  /**
   * Metrics for each combination of two factors' levels.
   */
  interactions: Interaction[];
  /**
   * Whole distributions of the times, what was given up included.
   */
  latencies: LatencyCurves[];
  /**
   * What of the record is not in the page, in sentences: thinned series, variants left out of pictures.
   */
  left_out: string[];
  /**
   * The margin below which a difference does not matter, as a share: 0.03.
   */
  margin: number;
  /**
   * How it was measured, each line a name and a text.
   */
  method: [string, string][];
  /**
   * What to do next, each a sentence or a command with its reason.
   */
  next: string[];
  /**
   * See [`PAGE_VERSION`].
   */
  page_version: number;
  /**
   * Variants taken apart: by service, by request.
   */
  parts: Table1[];
  /**
   * On which machine it was measured, and where the record lies.
   */
  place: [string, string][];
  /**
   * The experiment file as it was run; `None` where the record lacks it.
   */
  plan: string | null;
  /**
   * Version of the Proofload that ran it.
   */
  proofload: string;
  /**
   * The command that repeats it with the same seed.
   */
  repeat: string;
  /**
   * Each metric block by block.
   */
  series: BlockSeries[];
  state: State;
  /**
   * A trial of each variant from its start to its end: of the block in the middle.
   */
  time_lines: TimeLine[];
  /**
   * The question, or the experiment's name where the file asks none.
   */
  title: string;
  /**
   * The variants in the order of the plan. Their index is their colour and mark everywhere.
   */
  variants: Variant[];
  /**
   * Each comparison, once for each metric that gets a verdict.
   */
  verdicts: Verdict[];
  /**
   * Why one costs more than the other; `None` where nothing was captured.
   */
  why: WhySection | null;
}
/**
 * What the result takes for granted.
 */
export interface Assumption {
  /**
   * What this record shows of it.
   */
  evidence: string;
  /**
   * `doubtful`, `unchecked` or `supported`.
   */
  standing: string;
  /**
   * What it is.
   */
  text: string;
}
/**
 * What each factor does on average, and what two of them do to each other.
 */
export interface Effects {
  /**
   * What the lines are, with the metric.
   */
  heading: string;
  /**
   * Main effects first.
   */
  lines: EffectLine[];
  /**
   * Why there are no lines, or what is not among them.
   */
  note: string | null;
}
/**
 * One effect.
 */
export interface EffectLine {
  /**
   * Estimate with interval, in words.
   */
  detail: string;
  /**
   * Whether it is of two factors.
   */
  interaction: boolean;
  /**
   * Such as `node_env: production / development`.
   */
  label: string;
  outcome: Outcome;
  /**
   * The effect as a ratio.
   */
  ratio: Ratio | null;
  /**
   * The verdict as a word.
   */
  word: string;
}
/**
 * A ratio with its interval.
 */
export interface Ratio {
  /**
   * The estimate; 1 is no difference.
   */
  estimate: number;
  /**
   * Upper end.
   */
  high: number;
  /**
   * Lower end of the interval.
   */
  low: number;
}
/**
 * Errors of one variant, phase and cause.
 */
export interface ErrorRow {
  /**
   * What happened.
   */
  cause: string;
  /**
   * How often.
   */
  count: number;
  /**
   * What came instead, where that is known.
   */
  example: string | null;
  /**
   * Where in a request's life: `connect`, `tls`, `send`, `head`, `body`, `idle`, `response`, `time-out`, `unfinished`.
   */
  phase: string;
  /**
   * Of so many requests.
   */
  requests: number;
  /**
   * Index of the variant.
   */
  variant: number;
}
/**
 * A table, ready to show.
 */
export interface Table {
  /**
   * Headings of the columns.
   */
  columns: string[];
  /**
   * What it tells.
   */
  heading: string;
  /**
   * Columns at the left that hold names; the others hold figures.
   */
  names: number;
  /**
   * The cells.
   */
  rows: string[][];
}
/**
 * A finding.
 */
export interface Finding {
  /**
   * What was found, with its figures.
   */
  evidence: string;
  /**
   * What `proofload validity NUMBER` says of it, as paragraphs of plain text; the page folds it away. Empty where an earlier finding of
   * the same number has it.
   */
  explanation: string[];
  grade: Grade;
  /**
   * Its number, such as `V8`.
   */
  number: string | null;
  /**
   * What to do.
   */
  remedy: string;
  /**
   * Indices of the variants it is about; empty means all.
   */
  variants: number[];
}
/**
 * One metric for each combination of two factors' levels: geometric means over trials and over the other factors.
 */
export interface Interaction {
  /**
   * Name of the factor along the axis, and its levels.
   *
   * @minItems 2
   * @maxItems 2
   */
  across: [string, string[]];
  /**
   * Name of the factor that has a line a level, and its levels.
   *
   * @minItems 2
   * @maxItems 2
   */
  lines: [string, string[]];
  /**
   * The metric's name.
   */
  metric: string;
  unit: Unit;
  /**
   * A row a line: its value at each level across; `None` where a variant has none.
   */
  values: (number | null)[][];
}
/**
 * Times of all variants, of one kind.
 */
export interface LatencyCurves {
  /**
   * One for each variant, empty points where there was none.
   */
  curves: LatencyCurve[];
  /**
   * `response time` from due to done, `service time` from sent to done.
   */
  kind: string;
  /**
   * What must be known to read it, such as that a closed loop's compares nothing.
   */
  note: string | null;
}
/**
 * The distribution of one variant's times.
 */
export interface LatencyCurve {
  /**
   * From this share on values are lower bounds, because of what was given up; `None` where none is.
   */
  at_least_from: number | null;
  /**
   * Requests of those that were given up: their times are at least what they waited.
   */
  censored: number;
  /**
   * Points of share (0 to 1, rising) and time in microseconds, at most 200. The last share is the highest that ten requests lie beyond.
   */
  points: [number, number][];
  /**
   * Requests in it.
   */
  requests: number;
}
/**
 * A table, ready to show.
 */
export interface Table1 {
  /**
   * Headings of the columns.
   */
  columns: string[];
  /**
   * What it tells.
   */
  heading: string;
  /**
   * Columns at the left that hold names; the others hold figures.
   */
  names: number;
  /**
   * The cells.
   */
  rows: string[][];
}
/**
 * One metric, block by block.
 */
export interface BlockSeries {
  /**
   * Numbers of the blocks, or of some evenly spread over them; dropped ones are among them.
   */
  blocks: number[];
  /**
   * Those of them that count for nothing.
   */
  dropped: number[];
  /**
   * The metric's name: `throughput`, `CPU/request`, `peak memory`, `p50`, `p90`, `p99`, `p99.9`.
   */
  metric: string;
  unit: Unit1;
  /**
   * For each variant, its value in each of the blocks.
   */
  values: (number | null)[][];
}
/**
 * A trial from its first slice to its last. A slice is one point, or several where its rate is known in shorter parts: these have all else
 * of the slice in common, and `failed` in the first of them.
 */
export interface TimeLine {
  /**
   * Seconds from the trial's first slice to the begin of each point.
   */
  at_s: number[];
  /**
   * Number of the block.
   */
  block: number;
  /**
   * Processor cores that the services kept busy.
   */
  cores: (number | null)[];
  /**
   * Requests that did not end in an expected response.
   */
  failed: number[];
  /**
   * Seconds that each point lasts: where turns of other trials lie between, until the next.
   */
  lasts_s: number[];
  /**
   * Event-loop delay of the captures of this variant in microseconds: median and p99, over the whole window; `None` without captures.
   *
   * @minItems 2
   * @maxItems 2
   */
  loop_delay_us: [number, number] | null;
  /**
   * Quantiles of the times in microseconds: of 50, 90 and 99 %, as far as there are requests for them. Response times in open loop, service
   * times in closed loop; lower bounds where requests were given up.
   */
  p50_us: (number | null)[];
  /**
   * Likewise.
   */
  p90_us: (number | null)[];
  /**
   * Likewise.
   */
  p99_us: (number | null)[];
  /**
   * Expected responses per second.
   */
  rate_per_s: (number | null)[];
  /**
   * Resident memory of the services in bytes, after the slice.
   */
  rss_bytes: number[];
  /**
   * Share of the CPU time that the host gave to others.
   */
  steal_share: number[];
  /**
   * Index of the variant.
   */
  variant: number;
  /**
   * Points from the begin that are warm-up.
   */
  warm_up: number;
}
/**
 * A variant.
 */
export interface Variant {
  /**
   * Level of each factor, in the order of the factors.
   */
  levels: [string, string][];
  /**
   * Its name.
   */
  name: string;
  /**
   * Requests in measured slices.
   */
  requests: number;
  /**
   * Trials that count.
   */
  trials: number;
  /**
   * Whether a finding voids it.
   */
  void: boolean;
}
/**
 * A verdict about one metric of one comparison.
 */
export interface Verdict {
  /**
   * Other metrics, shown but not judged: with the first verdict of a comparison.
   */
  also: string[];
  /**
   * Index of the baseline among the variants.
   */
  baseline: number;
  /**
   * The ratio of each block that counts, in their order, or of some evenly spread over them; empty where no number may be shown.
   */
  blocks: number[];
  /**
   * Index of the candidate.
   */
  candidate: number;
  /**
   * Reads as "candidate against baseline".
   */
  comparison: string;
  /**
   * Estimate and interval as the other forms print them, or why there is none.
   */
  detail: string;
  /**
   * The metric's name, as in [`BlockSeries::metric`].
   */
  metric: string;
  /**
   * Whether more of it is better.
   */
  more_is_better: boolean;
  outcome: Outcome1;
  /**
   * The ratio candidate to baseline; `None` where no number may be shown.
   */
  ratio: Ratio | null;
  /**
   * The verdict as a word.
   */
  word: string;
}
/**
 * Why one costs more than the other.
 */
export interface WhySection {
  /**
   * What makes it doubtful: what was seen, and what to do.
   */
  doubts: [string, string][];
  /**
   * Path of the flame graphs' page beside this one; `None` where it is not there.
   */
  flame_page: string | null;
  /**
   * How it was captured.
   */
  method: [string, string][];
  /**
   * One for each comparison: heading, and paragraphs.
   */
  reasons: [string, string[]][];
  /**
   * Tables of kinds, packages, functions.
   */
  tables: Table1[];
}
