// SPDX-License-Identifier: Apache-2.0
type Json = { [key: string]: unknown };

export interface Mistake {
  message: string;
  file: string;
  path: string;
  hint: string;
  text: string;
}
export class StepcastError extends Error {
  errors: Mistake[];
}
export interface Progress {
  elapsed_s: number;
  bounded: number;
  replayed: number;
  best_step_time_s: number;
  bound_step_time_s: number;
  best_scenario: string;
}
export interface Stepcast {
  /** A call of the module and its answer, as they are. */
  ask(call: string, args: Json): Json;
  /** The forecast of one step, in the format of `stepcast predict --format json`. */
  predict(scenario: Json, options?: { set?: Json; what_if?: string[] }): Json;
  compare(scenarios: { name: string; scenario: Json }[]): Json;
  /** The best layouts. `progress` hears of the search, and ends it by false. */
  plan(
    scenario: Json,
    options?: {
      places?: number;
      time_limit_s?: number;
      replays?: number;
      objective?: string;
      progress?: (now: Progress) => boolean | void;
    },
  ): Json;
  list(topic: "models" | "clusters" | "gpus" | "schedules" | "keys", filter?: string): Json[];
}
export function load(): Promise<Stepcast>;
