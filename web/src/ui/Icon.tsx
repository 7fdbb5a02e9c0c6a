import {
  Activity, ArrowLeft, ArrowRight, Ban, Bell, BookOpen, Check, ChevronDown, ChevronRight, CircleCheck, CircleDashed,
  CirclePause, CirclePlay, CircleQuestionMark, CircleX, Clock, Copy, Download, ExternalLink, FileText, Gauge, Globe, Inbox,
  KeyRound, LayoutDashboard, LoaderCircle, LogOut, Mail, MailX, Menu, Monitor, Moon, OctagonAlert, OctagonPause, Pause,
  Play, Plus, Power, PowerOff, RadioTower, RefreshCw, RotateCw, ScrollText, Search, Send, Server, Settings, ShieldCheck,
  Sun, Tags, Trash2, TriangleAlert, Undo2, Users, Webhook, X, Zap, ZapOff, type IconNode,
} from 'lucide';

const nodes = {
  activity: Activity,
  'arrow-left': ArrowLeft,
  'arrow-right': ArrowRight,
  ban: Ban,
  bell: Bell,
  book: BookOpen,
  check: Check,
  'chevron-down': ChevronDown,
  'chevron-right': ChevronRight,
  'circle-check': CircleCheck,
  'circle-dashed': CircleDashed,
  'circle-pause': CirclePause,
  'circle-play': CirclePlay,
  'circle-x': CircleX,
  clock: Clock,
  copy: Copy,
  download: Download,
  external: ExternalLink,
  file: FileText,
  gauge: Gauge,
  globe: Globe,
  help: CircleQuestionMark,
  inbox: Inbox,
  'key-round': KeyRound,
  dashboard: LayoutDashboard,
  'loader-circle': LoaderCircle,
  'log-out': LogOut,
  mail: Mail,
  'mail-x': MailX,
  menu: Menu,
  monitor: Monitor,
  moon: Moon,
  'octagon-alert': OctagonAlert,
  'octagon-pause': OctagonPause,
  pause: Pause,
  play: Play,
  plus: Plus,
  power: Power,
  'power-off': PowerOff,
  radio: RadioTower,
  refresh: RefreshCw,
  'rotate-cw': RotateCw,
  scroll: ScrollText,
  search: Search,
  send: Send,
  server: Server,
  settings: Settings,
  shield: ShieldCheck,
  sun: Sun,
  tags: Tags,
  trash: Trash2,
  'triangle-alert': TriangleAlert,
  undo: Undo2,
  users: Users,
  webhook: Webhook,
  x: X,
  zap: Zap,
  'zap-off': ZapOff,
} satisfies Record<string, IconNode>;

export type IconName = keyof typeof nodes;

export function Icon({ name }: { name: IconName }) {
  return (
    <svg class="icon" viewBox="0 0 24 24" aria-hidden="true">
      {nodes[name].map(([Tag, attributes], index) => {
        const Shape = Tag as 'path';
        return <Shape key={index} {...(attributes as object)} />;
      })}
    </svg>
  );
}
