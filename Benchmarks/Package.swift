// swift-tools-version: 6.2

import PackageDescription

// A separate package, so that users of Imprint neither fetch nor build it.
let package = Package(
    name: "imprint-benchmarks",
    products: [.library(name: "AllocationCounter", type: .dynamic, targets: ["CAllocationCounter"])],
    targets: [.target(name: "CAllocationCounter")]
)
