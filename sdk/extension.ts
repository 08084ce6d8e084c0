export type {
  ExtensionCard,
  ExtensionCommand,
  ExtensionContributions,
  ExtensionDocument,
  ExtensionManifest,
  ExtensionPermissions,
  ExtensionProcess,
  ExtensionSetting,
  ExtensionSideView,
  ExtensionTool,
  ExtensionView,
  ExtensionViewer,
} from '../plugins/extensions/contract.js'
export type { Api } from './api.js'
export type { Input, Reply } from './contract.js'
export type {
  ExtensionDocumentFile,
  ExtensionDocumentText,
  ExtensionHost,
  ExtensionModule,
  AllowedService,
  ExtensionToolContext,
  ExtensionToolResult,
  ExtEvent,
  ExtRequest,
  ExtResponse,
  HostRequestInit,
  HostResponse,
  HostSocket,
  Off,
  ProgramResult,
  RouteEntryOf,
} from './node/extension/host.js'
export type {
  DispatchFrame,
  ListenerMessage,
  ListenerState,
  ListenerStatus,
  OfferedTemplate,
  ServiceReceiptStep,
  PaidAnswer,
  PaymentRequest,
  ServiceTerms,
  TemplateUse,
} from './node/extension/protocol.js'
export type { Role } from './types.js'
export type { UiEvents, UiFile, UiHost, UiModule, UiRequest, UiSettings, UiSurface, UiTheme } from './ui-host.js'
