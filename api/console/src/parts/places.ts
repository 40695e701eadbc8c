import {
  IconDatabase,
  IconFileCode,
  IconInfoCircle,
  IconKey,
  IconMathFunction,
  IconPlayerPlay,
  IconRouteAltLeft,
  IconServer,
  IconShieldLock,
  IconStack2,
  IconTerminal2,
  IconTopologyStar3,
} from "@tabler/icons-react";

/** The screens, as the navigation groups them. */
export const PLACES = [
  [
    "Flows",
    [
      { to: "/", label: "Flow", icon: IconTopologyStar3 },
      { to: "/sql", label: "SQL", icon: IconTerminal2 },
      { to: "/queries", label: "Queries", icon: IconPlayerPlay },
      { to: "/applications", label: "Applications", icon: IconStack2 },
      { to: "/lineage", label: "Lineage", icon: IconRouteAltLeft },
    ],
  ],
  [
    "Objects",
    [
      { to: "/catalog", label: "Catalog", icon: IconDatabase },
      { to: "/stores", label: "Stores", icon: IconServer },
      { to: "/schema-registries", label: "Schemas", icon: IconFileCode },
      { to: "/functions", label: "Functions", icon: IconMathFunction },
      { to: "/secrets", label: "Secrets", icon: IconKey },
    ],
  ],
  [
    "Server",
    [
      { to: "/access", label: "Access", icon: IconShieldLock },
      { to: "/about", label: "About", icon: IconInfoCircle },
    ],
  ],
] as const;
