export type { Api, Events, Points } from './api.js'
export type {
  Bytes,
  Call,
  Context,
  Contract,
  Handlers,
  Identified,
  Input,
  Position,
  Replies,
  Reply,
  Requests,
  Socket,
  SocketContext,
  Stream,
  Watch,
} from './contract.js'
export { explain, valueInWords } from './explain.js'
export type { Activate, Files, Host, Journals, Log, ModelSettings, Place, Store, WallGrants } from './host.js'
export { ignored, warned } from './ignored.js'
export { accessTo, allows, commonReach, covers, isWithin, leads, pathOfRepo, reachOf } from './reach.js'
export type { Access, Cover, Reach, ReachFolder } from './reach.js'
export { Refusal, refuse } from './refusal.js'
export type { FieldError, Reason } from './refusal.js'
export type {
  Caller,
  CallerKind,
  ChangedSides,
  Count,
  HttpFacts,
  Millis,
  Ok,
  Positive,
  Role,
  Scope,
  SideFile,
  SidePair,
  Text,
  TurnReach,
} from './types.js'
