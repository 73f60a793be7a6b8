// The parts of Vega that the figures need: no maps, forces, trees, clouds or regressions, which are half of it.
import { extend } from 'vega-util';
import { transforms } from 'vega-dataflow';
import * as tx from 'vega-transforms';
import * as vtx from 'vega-view-transforms';
import * as encode from 'vega-encode';

extend(transforms, tx, vtx, encode);

export { View } from 'vega-view';
export { parse } from 'vega-parser';
