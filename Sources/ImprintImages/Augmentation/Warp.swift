internal import CImprintKernels

extension RasterImage {
    /// Applies a geometric map and a colour map in one pass, with bilinear interpolation and repeated borders.
    func warped(by map: ProjectiveMap, colors: ColorMap = ColorMap()) -> RasterImage {
        var warp = imprint_warp()
        (warp.width, warp.height, warp.channels) = (Int32(width), Int32(height), Int32(channels))
        withUnsafeMutableBytes(of: &warp.map) { $0.copyBytes(from: map.matrix(in: self).bytes) }
        withUnsafeMutableBytes(of: &warp.color) { $0.copyBytes(from: colors.contributions(channels: channels).bytes) }
        return withNewSamples { target in
            withUnsafeTemporaryAllocation(of: UInt8.self, capacity: imprint_warp_scratch(&warp)) { scratch in
                imprint_warp_image(&warp, samples, target, scratch.baseAddress)
            }
        }
    }
}

extension [Float] {
    fileprivate var bytes: [UInt8] { withUnsafeBytes(Array<UInt8>.init) }
}
