// swift-format-ignore-file
// Foundation on Linux has the geometry types. Its reference types stand for the types of Core Foundation that Apple bridges to them.
@_exported import Foundation

public typealias CFString = NSString
public typealias CFData = NSData
public typealias CFMutableData = NSMutableData
public typealias CFDictionary = NSDictionary

public enum CGImageAlphaInfo: UInt32, Sendable {
    case none = 0
    case premultipliedLast = 1
    case premultipliedFirst = 2
    case last = 3
    case first = 4
    case noneSkipLast = 5
    case noneSkipFirst = 6
    case alphaOnly = 7
}

public struct CGBitmapInfo: OptionSet, Sendable {
    public let rawValue: UInt32
    public init(rawValue: UInt32) { self.rawValue = rawValue }
}

public enum CGColorRenderingIntent: Int32, Sendable {
    case defaultIntent = 0
    case absoluteColorimetric = 1
    case relativeColorimetric = 2
    case perceptual = 3
    case saturation = 4
}

public enum CGInterpolationQuality: Int32, Sendable {
    case `default` = 0
    case none = 1
    case low = 2
    case high = 3
    case medium = 4
}

public enum CGBlendMode: Int32, Sendable {
    case normal = 0
    case copy = 17
}

public final class CGColorSpace: @unchecked Sendable {
    public init?(name: CFString) { fatalError() }
    public static var sRGB: CFString { fatalError() }
    init() {}
}

public func CGColorSpaceCreateDeviceGray() -> CGColorSpace { fatalError() }

public final class CGDataProvider {
    public init?(data: CFData) { fatalError() }
}

public final class CGImage: @unchecked Sendable {
    public init?(
        width: Int, height: Int, bitsPerComponent: Int, bitsPerPixel: Int, bytesPerRow: Int, space: CGColorSpace,
        bitmapInfo: CGBitmapInfo, provider: CGDataProvider, decode: UnsafePointer<CGFloat>?, shouldInterpolate: Bool,
        intent: CGColorRenderingIntent
    ) { fatalError() }

    public func copy(colorSpace: CGColorSpace) -> CGImage? { fatalError() }
}

public final class CGContext {
    public init?(
        data: UnsafeMutableRawPointer?, width: Int, height: Int, bitsPerComponent: Int, bytesPerRow: Int,
        space: CGColorSpace, bitmapInfo: UInt32
    ) { fatalError() }

    public var interpolationQuality: CGInterpolationQuality {
        get { fatalError() }
        set { fatalError() }
    }

    public func setBlendMode(_ mode: CGBlendMode) { fatalError() }

    public func draw(_ image: CGImage, in rect: CGRect, byTiling: Bool = false) { fatalError() }
}
